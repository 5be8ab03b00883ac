//! Where things lie in memory, and the addresses that stacks are made of.

use super::random::Random;

/// An image in memory.
#[derive(Clone, Debug)]
pub(super) struct Image {
    pub(super) base: u64,
    pub(super) size: u64,
    pub(super) path: String,
    pub(super) pdb: String,
}

/// The layout of a system of 32 or 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    kernel: u64,
    driver_size: u64,
    program: u64,
    libraries: u64,
    library_size: u64,
    methods: u64,
    pub(super) keys: u64,
}

/// Images of the kernel: about as many as a desktop has.
const DRIVERS: usize = 160;
/// Libraries that exist; a process has the first ones of them.
pub(super) const LIBRARIES: usize = 256;
/// The room of a compiled method.
const METHOD: u64 = 0x400;
/// What fits before the next thing.
pub(super) const MOST_METHODS: u64 = 100_000;
/// What every processor does that has nothing to do.
const IDLE: u64 = 0x4_2A70;

impl Space {
    pub(super) fn new(pointer_size: usize) -> Self {
        match pointer_size {
            4 => Space {
                kernel: 0x8280_0000,
                driver_size: 0x8_0000,
                program: 0x0040_0000,
                libraries: 0x1000_0000,
                library_size: 0x20_0000,
                methods: 0x0200_0000,
                keys: 0x8A00_0000,
            },
            _ => Space {
                kernel: 0xFFFF_F800_0280_0000,
                driver_size: 0x8_0000,
                program: 0x0000_7FF6_0000_0000,
                libraries: 0x0000_7FF8_0000_0000,
                library_size: 0x20_0000,
                methods: 0x0000_7FF5_0000_0000,
                keys: 0xFFFF_FA80_0400_0000,
            },
        }
    }

    pub(super) fn drivers(&self) -> Vec<Image> {
        let driver = |number: usize| {
            let (folder, name) = match number {
                0 => ("", "ntoskrnl.exe".to_owned()),
                _ => (r"drivers\", format!("driver{number:03}.sys")),
            };
            let path = format!(r"\SystemRoot\System32\{folder}{name}");
            self.image(self.kernel, self.driver_size, number, path)
        };
        (0..DRIVERS).map(driver).collect()
    }

    pub(super) fn library(&self, number: usize) -> Image {
        let path = format!(r"\Device\HarddiskVolume2\Windows\System32\library{number:03}.dll");
        self.image(self.libraries, self.library_size, number, path)
    }

    pub(super) fn program(&self, name: &str) -> Image {
        let path = format!(r"\Device\HarddiskVolume2\Program Files\Believable\{name}");
        self.image(self.program, self.library_size, 0, path)
    }

    fn image(&self, from: u64, size: u64, number: usize, path: String) -> Image {
        let name = path.rsplit('\\').next().unwrap_or(&path);
        let pdb = format!("{}.pdb", name.rsplit_once('.').map_or(name, |(stem, _)| stem));
        Image { base: from + number as u64 * size, size, path, pdb }
    }

    pub(super) fn idle(&self) -> u64 {
        self.kernel + IDLE
    }

    /// An address in one of the first drivers, most often in the kernel.
    pub(super) fn kernel_address(&self, random: &mut Random) -> u64 {
        let driver = match random.chance(0.6) {
            true => 0,
            false => random.low(DRIVERS as u64),
        };
        self.kernel + driver * self.driver_size + code(random, self.driver_size)
    }

    /// An address in the program or one of its libraries, the first ones more often.
    pub(super) fn user_address(&self, libraries: usize, random: &mut Random) -> u64 {
        if libraries == 0 || random.chance(0.3) {
            return self.program + code(random, self.library_size);
        }
        self.libraries + random.low(libraries as u64) * self.library_size + code(random, self.library_size)
    }

    /// Where a compiled method lies, and its size.
    pub(super) fn method(&self, number: u32) -> (u64, u32) {
        (self.methods + u64::from(number) * METHOD, METHOD as u32 - 0x40)
    }

    pub(super) fn is_method(&self, address: u64) -> bool {
        (self.methods..self.methods + MOST_METHODS * METHOD).contains(&address)
    }

    pub(super) fn method_address(&self, methods: u32, random: &mut Random) -> u64 {
        let number = random.low(u64::from(methods));
        self.methods + number * METHOD + random.below(METHOD - 0x40)
    }
}

/// An offset in the code of an image: one of some call sites of one of its functions.
fn code(random: &mut Random, size: u64) -> u64 {
    const FUNCTION: u64 = 0x100;
    const CODE: u64 = 0x1000;
    let function = random.below((size - CODE) / FUNCTION);
    CODE + function * FUNCTION + random.below(FUNCTION / 5) * 5
}
