//! The modules, processes and threads of the machine.

use super::random::hash;
use crate::synth::Guid;

/// A PE file: where it lies on drive C, or in the system folder, and how large it is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Module {
    pub path: &'static str,
    pub base: u64,
    pub size: u32,
    /// Another build of the same program has other code at other places.
    build: &'static str,
}

impl Module {
    const fn new(path: &'static str, base: u64, size: u32) -> Self {
        Module { path, base, size, build: "" }
    }

    /// A number that follows from a text and from the build.
    pub(super) fn number(&self, text: &str) -> u64 {
        hash(&format!("{text}{}", self.build))
    }

    /// `ntdll.dll`.
    pub(super) fn file(&self) -> &'static str {
        self.path.rsplit('\\').next().unwrap_or(self.path)
    }

    /// `ntdll`: how call paths name it. The kernel is `nt`.
    pub(super) fn stem(&self) -> &'static str {
        match self.file() {
            "ntoskrnl.exe" => "nt",
            file => file.rsplit_once('.').map_or(file, |(stem, _)| stem),
        }
    }

    pub(super) fn is_kernel(&self) -> bool {
        self.base >= 0xFFFF_8000_0000_0000
    }

    /// The path as image events have it.
    pub(super) fn nt_path(&self) -> String {
        if self.is_kernel() {
            format!(r"\SystemRoot\{}", self.path)
        } else {
            format!(r"\Device\HarddiskVolume3\{}", self.path)
        }
    }

    pub(super) fn time_date_stamp(&self) -> u32 {
        self.number(self.path) as u32 | 0x4000_0000
    }

    pub(super) fn checksum(&self) -> u32 {
        self.size + (self.number(self.path) >> 44) as u32
    }

    /// GUID, age and file name of the PDB.
    pub(super) fn pdb(&self) -> (Guid, u32, String) {
        let (low, high) = (self.number(self.path), self.number(&format!("{} pdb", self.path)));
        let mut id = [0; 16];
        id[..8].copy_from_slice(&low.to_le_bytes());
        id[8..].copy_from_slice(&high.to_le_bytes());
        id[7] = id[7] & 0x0F | 0x40; // a random GUID
        id[8] = id[8] & 0x3F | 0x80;
        let file = self.file();
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let name = match stem {
            "ntoskrnl" => "ntkrnlmp.pdb".to_owned(),
            "orders" | "pricing" => format!(r"D:\build\orders\bin\{stem}.pdb"),
            "indexer" | "hasher" => format!(r"C:\src\indexer\build\Release\{stem}.pdb"),
            stem => format!("{stem}.pdb"),
        };
        (Guid(id), 1, name)
    }
}

/// Where the code of a module ends.
pub(super) fn code_size(module: &Module) -> u32 {
    (u64::from(module.size) * 6 / 10) as u32
}

const KERNEL: &[Module] = &[
    Module::new(r"system32\ntoskrnl.exe", 0xFFFF_F803_5A20_0000, 0x0144_F000),
    Module::new(r"system32\hal.dll", 0xFFFF_F803_5A1F_0000, 0x0000_6000),
    Module::new(r"System32\drivers\FLTMGR.SYS", 0xFFFF_F803_5C20_0000, 0x0008_3000),
    Module::new(r"System32\drivers\Ntfs.sys", 0xFFFF_F803_5CA0_0000, 0x0034_2000),
    Module::new(r"System32\drivers\WdFilter.sys", 0xFFFF_F803_5C3A_0000, 0x000A_1000),
    Module::new(r"System32\drivers\storport.sys", 0xFFFF_F803_5D10_0000, 0x000D_4000),
    Module::new(r"System32\drivers\stornvme.sys", 0xFFFF_F803_5D20_0000, 0x0003_E000),
    Module::new(r"System32\drivers\NDIS.SYS", 0xFFFF_F803_5D30_0000, 0x0019_B000),
    Module::new(r"System32\drivers\tcpip.sys", 0xFFFF_F803_5D50_0000, 0x0033_5000),
    Module::new(r"system32\drivers\afd.sys", 0xFFFF_F803_5F10_0000, 0x000B_7000),
    Module::new(r"System32\drivers\e1r68x64.sys", 0xFFFF_F803_6040_0000, 0x0009_8000),
    Module::new(r"System32\drivers\intelppm.sys", 0xFFFF_F803_6100_0000, 0x0007_2000),
    Module::new(r"System32\drivers\dxgkrnl.sys", 0xFFFF_F803_6180_0000, 0x004C_E000),
    Module::new(r"System32\win32kbase.sys", 0xFFFF_CA9B_0C00_0000, 0x0033_A000),
    Module::new(r"System32\win32kfull.sys", 0xFFFF_CA9B_0C40_0000, 0x0041_5000),
];

const NTDLL: Module = Module::new(r"Windows\System32\ntdll.dll", 0x7FFB_9C6C_0000, 0x0026_8000);
const KERNEL32: Module = Module::new(r"Windows\System32\kernel32.dll", 0x7FFB_9B50_0000, 0x000C_9000);
const KERNELBASE: Module = Module::new(r"Windows\System32\KernelBase.dll", 0x7FFB_99C1_0000, 0x003F_4000);
const UCRTBASE: Module = Module::new(r"Windows\System32\ucrtbase.dll", 0x7FFB_99A3_0000, 0x0014_B000);
const WS2_32: Module = Module::new(r"Windows\System32\ws2_32.dll", 0x7FFB_9B70_0000, 0x0007_4000);
const MSWSOCK: Module = Module::new(r"Windows\System32\mswsock.dll", 0x7FFB_98E5_0000, 0x0006_9000);
const USER32: Module = Module::new(r"Windows\System32\user32.dll", 0x7FFB_9AF0_0000, 0x001C_6000);
const WIN32U: Module = Module::new(r"Windows\System32\win32u.dll", 0x7FFB_9970_0000, 0x0002_7000);
const BCRYPT: Module = Module::new(r"Windows\System32\bcryptprimitives.dll", 0x7FFB_9A18_0000, 0x0009_A000);
const VCRUNTIME: Module = Module::new(r"Windows\System32\vcruntime140.dll", 0x7FFB_8A01_0000, 0x0001_E000);

const ORDERS: &[Module] = &[
    Module::new(r"Services\Orders\orders.exe", 0x7FF6_1A3B_0000, 0x0002_9000),
    NTDLL,
    KERNEL32,
    KERNELBASE,
    UCRTBASE,
    VCRUNTIME,
    WS2_32,
    MSWSOCK,
    BCRYPT,
    Module::new(r"Services\Orders\pricing.dll", 0x7FFB_6E2D_0000, 0x0005_A000),
    Module::new(r"Program Files\dotnet\host\fxr\8.0.10\hostfxr.dll", 0x7FFB_7C11_0000, 0x0005_9000),
    Module::new(
        r"Program Files\dotnet\shared\Microsoft.NETCore.App\8.0.10\hostpolicy.dll",
        0x7FFB_7C08_0000,
        0x0006_4000,
    ),
    Module::new(
        r"Program Files\dotnet\shared\Microsoft.NETCore.App\8.0.10\coreclr.dll",
        0x7FFB_4F9A_0000,
        0x004E_6000,
    ),
    Module::new(
        r"Program Files\dotnet\shared\Microsoft.NETCore.App\8.0.10\clrjit.dll",
        0x7FFB_5B7C_0000,
        0x001B_D000,
    ),
    Module::new(
        r"Program Files\dotnet\shared\Microsoft.NETCore.App\8.0.10\System.Private.CoreLib.dll",
        0x7FFB_4DE1_0000,
        0x00CB_A000,
    ),
    Module::new(r"Services\Orders\Orders.Core.dll", 0x0000_01E2_5D60_0000, 0x0001_A000),
];

const INDEXER: &[Module] = &[
    Module::new(r"Tools\Indexer\indexer.exe", 0x7FF7_C2A4_0000, 0x0031_8000),
    NTDLL,
    KERNEL32,
    KERNELBASE,
    UCRTBASE,
    BCRYPT,
    VCRUNTIME,
];

const HASHER: &[Module] = &[
    Module::new(r"Tools\Indexer\hasher.exe", 0x7FF6_F05E_0000, 0x0008_B000),
    NTDLL,
    KERNEL32,
    KERNELBASE,
    UCRTBASE,
    BCRYPT,
];

const EXPLORER: &[Module] = &[
    Module::new(r"Windows\explorer.exe", 0x7FF7_3B95_0000, 0x002B_F000),
    NTDLL,
    KERNEL32,
    KERNELBASE,
    UCRTBASE,
    USER32,
    WIN32U,
];

const SVCHOST: &[Module] = &[
    Module::new(r"Windows\System32\svchost.exe", 0x7FF7_8EC1_0000, 0x0001_2000),
    NTDLL,
    KERNEL32,
    KERNELBASE,
];

/// A process and what it runs, alive in a range of milliseconds of the recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub id: u32,
    pub parent: u32,
    pub name: &'static str,
    pub command_line: &'static str,
    pub modules: &'static [Module],
    pub alive: (i64, i64),
    pub threads: &'static [Thread],
}

/// A thread, its share of the processors while it is busy, and what it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub id: u32,
    pub name: &'static str,
    pub priority: u8,
    pub weight: u64,
    pub busy: (i64, i64),
    /// The name of one of the [`stories`](super::stories).
    pub story: &'static str,
}

const fn thread(
    id: u32,
    name: &'static str,
    priority: u8,
    weight: u64,
    busy: (i64, i64),
    story: &'static str,
) -> Thread {
    Thread { id, name, priority, weight, busy, story }
}

/// How long the recording runs, in milliseconds.
pub(super) const LENGTH: i64 = 3_000;

/// A range that a process or thread has when it was there before and after.
pub(super) const ALWAYS: (i64, i64) = (i64::MIN, i64::MAX);

pub(super) const SYSTEM: u32 = 4;
const ORDERS_ID: u32 = 7312;

const PROCESSES: &[Process] = &[
    Process { id: 0, parent: 0, name: "Idle", command_line: "", modules: &[], alive: ALWAYS, threads: &[] },
    Process {
        id: SYSTEM,
        parent: 0,
        name: "System",
        command_line: "",
        modules: &[],
        alive: ALWAYS,
        threads: &[
            thread(12, "", 0, 2, ALWAYS, "zero pages"),
            thread(148, "", 12, 3, ALWAYS, "lazy writer"),
            thread(232, "", 18, 1, ALWAYS, "balance set"),
        ],
    },
    Process {
        id: 1180,
        parent: 880,
        name: "svchost.exe",
        command_line: r"C:\Windows\System32\svchost.exe -k LocalSystemNetworkRestricted -p",
        modules: SVCHOST,
        alive: ALWAYS,
        threads: &[thread(1204, "", 8, 3, ALWAYS, "service")],
    },
    Process {
        id: 5456,
        parent: 5420,
        name: "explorer.exe",
        command_line: r"C:\Windows\Explorer.EXE",
        modules: EXPLORER,
        alive: ALWAYS,
        threads: &[thread(5460, "", 9, 5, ALWAYS, "explorer")],
    },
    Process {
        id: ORDERS_ID,
        parent: 5456,
        name: "orders.exe",
        command_line: r#""C:\Services\Orders\orders.exe" --book equities --port 7450"#,
        modules: ORDERS,
        alive: ALWAYS,
        threads: &[
            thread(7316, "", 8, 2, ALWAYS, "orders main"),
            thread(7340, "Order Intake", 8, 22, ALWAYS, "intake"),
            thread(7344, "Matcher 0", 9, 48, (170, 2_900), "matcher"),
            thread(7348, "Matcher 1", 9, 36, (420, 2_900), "matcher"),
            thread(7352, "Journal Writer", 8, 18, ALWAYS, "journal"),
            thread(7368, ".NET Server GC", 10, 26, (1_240, 1_420), "gc"),
            thread(7372, ".NET Tiered Compilation Worker", 8, 24, (300, 1_150), "tiering"),
            thread(7380, ".NET TP Worker", 8, 16, ALWAYS, "pool"),
            thread(7384, ".NET TP Worker", 8, 12, (800, 2_700), "pool"),
        ],
    },
    Process {
        id: 9544,
        parent: 5456,
        name: "indexer.exe",
        command_line: r"C:\Tools\Indexer\indexer.exe --root C:\Data --workers 2",
        modules: INDEXER,
        alive: (360, i64::MAX),
        threads: &[
            thread(9548, "", 8, 20, (362, 2_850), "walker"),
            thread(9560, "tokenizer-0", 8, 34, (430, 2_750), "tokenizer"),
            thread(9564, "tokenizer-1", 8, 30, (430, 2_600), "tokenizer"),
        ],
    },
    Process {
        id: 9720,
        parent: 9544,
        name: "hasher.exe",
        command_line: r"hasher.exe --algorithm sha256 --stdin",
        modules: HASHER,
        alive: (1_620, 2_130),
        threads: &[thread(9724, "", 8, 40, (1_623, 2_128), "hasher")],
    },
];

/// The machine in one of its lives, with one build of its programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    pub kernel: &'static [Module],
    pub processes: &'static [Process],
    /// By how much everything lies elsewhere than in the first life.
    pub slide: u64,
    /// By how much ids are greater than in the first life.
    shift: u32,
    /// A function that takes twice as many samples.
    pub doubled: Option<&'static str>,
}

impl Machine {
    /// The one of the demo.
    pub(super) const FIRST: Machine =
        Machine { kernel: KERNEL, processes: PROCESSES, slide: 0, shift: 0, doubled: None };

    /// The same machine after its programs were built again and it was started again: every function has another RVA, every
    /// module another base and identity, every process and thread another id. All happens as in the first life, but one
    /// function takes twice as many samples.
    pub(super) fn second(doubled: &'static str) -> Machine {
        let (slide, shift) = (0x1_2340_0000, 10_000);
        let rebuilt = |modules: &[Module]| -> &'static [Module] {
            let module = |module: &Module| Module { base: module.base + slide, build: " again", ..*module };
            modules.iter().map(module).collect::<Vec<_>>().leak()
        };
        let mut machine =
            Machine { kernel: rebuilt(KERNEL), slide, shift, doubled: Some(doubled), ..Machine::FIRST };
        let process = |process: &Process| Process {
            id: machine.id(process.id),
            parent: machine.id(process.parent),
            modules: rebuilt(process.modules),
            threads: process
                .threads
                .iter()
                .map(|thread| Thread { id: thread.id + shift, ..*thread })
                .collect::<Vec<_>>()
                .leak(),
            ..*process
        };
        machine.processes = PROCESSES.iter().map(process).collect::<Vec<_>>().leak();
        machine
    }

    /// The id that a process or a thread of a process has in this life.
    pub(super) fn id(&self, first: u32) -> u32 {
        if first <= SYSTEM { first } else { first + self.shift }
    }

    /// The order service.
    pub(super) fn orders(&self) -> u32 {
        self.id(ORDERS_ID)
    }

    /// Every module, once.
    pub(super) fn modules(&self) -> impl Iterator<Item = &'static Module> + use<> {
        self.kernel.iter().chain(self.processes.iter().flat_map(|process| process.modules))
    }
}
