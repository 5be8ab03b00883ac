//! What is wrong with the counters of a machine. `healthy.reg` has no fault; each test adds one.

use std::collections::BTreeMap;

use etwprof::counters::Registry;
use etwprof::counters::perflib::{
    Diagnosis, Elsewhere, Facts, Files, Image, Kind, Library, Logged, Range, Severity, Unchecked, diagnose,
};
use etwprof::counters::trial::{Failure, Step, Trial};

use crate::support::image::{Pe, words};

const HEALTHY: &str = include_str!("healthy.reg");

/// Of another width than this program.
const OTHER_BITS: u32 = 96 - usize::BITS;

/// Registry keys to type less of: `S` are the services, `P` is Perflib.
fn registry(changes: &str) -> Registry {
    let mut registry = Registry::default();
    registry.read(HEALTHY.as_bytes()).unwrap();
    let changes = changes
        .replace("[S\\", r"[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\")
        .replace("[-S\\", r"[-HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\")
        .replace("[P", r"[HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Perflib")
        .replace("[-P", r"[-HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Perflib");
    registry.read(format!("Windows Registry Editor Version 5.00\n{changes}").as_bytes()).unwrap();
    registry
}

fn found_with(
    changes: &str,
    files: &dyn Files,
    trials: &BTreeMap<String, Trial>,
    logged: &[Logged],
) -> Diagnosis {
    diagnose(&Facts { registry: &registry(changes), names: None, files, trials, logged })
}

fn found(changes: &str) -> Vec<(Option<String>, Kind)> {
    let found = found_with(changes, &Elsewhere, &BTreeMap::new(), &[]);
    found.findings.into_iter().map(|finding| (finding.service, finding.kind)).collect()
}

fn of(service: &str, kind: Kind) -> (Option<String>, Kind) {
    (Some(service.to_owned()), kind)
}

const CONTOSO: &str = "[S\\Contoso Orders\\Performance]\n";

/// The same value as a text of UTF-16 in `hex(7):`.
fn multi(texts: &[&str]) -> String {
    let bytes = texts.iter().flat_map(|text| crate::synth::counters::utf16(text)).chain([0, 0]);
    let bytes: Vec<String> = bytes.map(|byte| format!("{byte:02x}")).collect();
    format!("hex(7):{}", bytes.join(","))
}

#[test]
fn a_healthy_machine_has_no_finding() {
    let found = found_with("", &Elsewhere, &BTreeMap::new(), &[]);
    assert_eq!(found.findings, []);
    assert_eq!(found.unchecked, []);
    let services = [
        ".NET CLR Data",
        ".NET CLR Networking",
        ".NET Data Provider for SqlServer",
        "Contoso Orders",
        "PerfOS",
        "PerfProc",
        "RemoteAccess",
        "Spooler",
        "Stub",
        "Tcpip",
        "TermService",
        "WmiApRpl",
    ];
    assert_eq!(found.services, services);
    // Nor has one whose DLLs are all in order.
    assert_eq!(found_with("", &Machine::default(), &BTreeMap::new(), &[]).findings, []);
}

#[test]
fn what_was_not_exported_is_said() {
    let found = found_with("[-P]\n", &Elsewhere, &BTreeMap::new(), &[]);
    assert_eq!((found.findings.len(), found.unchecked), (0, vec![Unchecked::Perflib, Unchecked::Names]));
    let found = found_with("[-P\\009]\n", &Elsewhere, &BTreeMap::new(), &[]);
    assert_eq!((found.findings.len(), found.unchecked), (0, vec![Unchecked::Names]));
}

#[test]
fn counters_that_are_switched_off() {
    let value = "\"Disable Performance Counters\"=dword:";
    assert_eq!(found(&format!("{CONTOSO}{value}4")), [of("Contoso Orders", Kind::Disabled { value: 4 })]);
    assert_eq!(found(&format!("[P]\n{value}1")), [(None, Kind::AllDisabled { value: 1 })]);
    assert_eq!(found(&format!("[P]\n{value}0\n{CONTOSO}{value}0")), []);
}

#[test]
fn values_that_a_dll_needs() {
    let missing =
        |values: &[&'static str]| of("Contoso Orders", Kind::ValuesMissing { values: values.to_vec() });
    assert_eq!(found(&format!("{CONTOSO}\"Open\"=-\n\"Close\"=\"\"")), [missing(&["Open", "Close"])]);
    assert_eq!(found(&format!("{CONTOSO}\"Library\"=-")), [missing(&["Library"])]);
    let mistyped = |value, found: &str, wanted| {
        of("Contoso Orders", Kind::ValueType { value, found: found.to_owned(), wanted })
    };
    assert_eq!(found(&format!("{CONTOSO}\"Collect\"=dword:1")), [mistyped("Collect", "REG_DWORD", "REG_SZ")]);
    assert_eq!(
        found(&format!("{CONTOSO}\"Disable Performance Counters\"=\"0\"")),
        [mistyped("Disable Performance Counters", "REG_SZ", "REG_DWORD")]
    );
    // None of them: a key that something else has left, with a range or without.
    let none = "\"Library\"=-\n\"Open\"=-\n\"Collect\"=-\n\"Close\"=-\n";
    assert_eq!(found(&format!("{CONTOSO}{none}")), []);
}

#[test]
fn names_that_were_never_loaded() {
    let none = "\"First Counter\"=-\n\"Last Counter\"=-\n\"First Help\"=-\n\"Last Help\"=-\n";
    let kind = Kind::NeverLoaded { ini: "orders.ini".to_owned() };
    assert_eq!(found(&format!("{CONTOSO}{none}")), [of("Contoso Orders", kind)]);
    // It names the objects of Windows that it counts.
    assert_eq!(found(&format!("{CONTOSO}{none}\"Object List\"=\"230\"")), []);
    assert_eq!(found(&format!("{CONTOSO}{none}\"PerfIniFile\"=-")), []);
}

#[test]
fn ranges_that_do_not_fit_together() {
    let kind = |first_counter, last_counter, first_help, last_help| {
        of("Contoso Orders", Kind::RangeInconsistent { first_counter, last_counter, first_help, last_help })
    };
    let (first, last) = (Some(2262), Some(2266));
    for (change, expected, severity) in [
        ("\"First Help\"=dword:000008d9", kind(first, last, Some(2265), Some(2267)), Severity::Warning),
        ("\"Last Help\"=-", kind(first, last, Some(2263), None), Severity::Warning),
        ("\"Last Counter\"=-", kind(first, None, Some(2263), Some(2267)), Severity::Error),
        ("\"First Counter\"=dword:000008d7", kind(Some(2263), last, Some(2263), Some(2267)), Severity::Error),
        (
            "\"First Counter\"=dword:ffffffff",
            kind(Some(u32::MAX), last, Some(2263), Some(2267)),
            Severity::Error,
        ),
    ] {
        assert_eq!(expected.1.severity(), severity, "{change}");
        assert_eq!(found(&format!("{CONTOSO}{change}")), [expected], "{change}");
    }
}

const RANGE: Range = Range { first: 2262, last: 2266 };

#[test]
fn ranges_of_two_services_that_overlap() {
    let changes = "[S\\Fabrikam\\Performance]\n\"First Counter\"=dword:000008d8\n\"Last Counter\"=dword:000008dc\n\
                   \"First Help\"=dword:000008d9\n\"Last Help\"=dword:000008dd\n";
    let range = Range { first: 2264, last: 2268 };
    let overlap = Kind::Overlap { range, other: "Contoso Orders".to_owned(), other_range: RANGE };
    let unnamed = Kind::NamesMissing { range, missing: 1, of: 3 };
    assert_eq!(found(changes), [of("Fabrikam", unnamed.clone()), of("Fabrikam", overlap)]);
    // One that holds several, and ends behind all of them.
    let changes = "[S\\Wide\\Performance]\n\"First Counter\"=dword:000008c6\n\"Last Counter\"=dword:0000238c\n\
                   \"First Help\"=dword:000008c7\n\"Last Help\"=dword:0000238d\n";
    let others: Vec<_> = found(changes)
        .into_iter()
        .map(|(service, kind)| match kind {
            Kind::Overlap { other, .. } => (service.unwrap(), other),
            other => panic!("{other:?}"),
        })
        .collect();
    let wide = |name: &str| (name.to_owned(), "Wide".to_owned());
    let first = ("Wide".to_owned(), ".NET CLR Data".to_owned());
    assert!(others.contains(&wide("TermService")) && others.contains(&wide("Contoso Orders")), "{others:?}");
    assert!(others.contains(&first) || others.contains(&wide(".NET CLR Data")), "{others:?}");
    assert_eq!(others.len(), 5);
}

#[test]
fn ranges_among_those_of_windows() {
    let changes = "\"First Counter\"=dword:000000e6\n\"Last Counter\"=dword:000000e6\n\
                   \"First Help\"=dword:000000e7\n\"Last Help\"=dword:000000e7\n";
    let range = Range { first: 230, last: 230 };
    let kind = Kind::RangeTooLow { range, base_index: 1847 };
    assert_eq!(found(&format!("{CONTOSO}{changes}")), [of("Contoso Orders", kind)]);
}

#[test]
fn what_services_have_in_common() {
    let value =
        |value, found: Option<&str>| (None, Kind::PerflibValue { value, found: found.map(str::to_owned) });
    assert_eq!(found("[P]\n\"Base Index\"=-"), [value("Base Index", None)]);
    assert_eq!(found("[P]\n\"Last Help\"=\"9101\""), [value("Last Help", Some("REG_SZ"))]);
    assert_eq!(
        found("[P]\n\"Last Help\"=dword:00000001"),
        [(None, Kind::LastHelp { last_counter: 9100, last_help: 1 })]
    );
    let low = Kind::LastTooLow { value: "Last Counter", perflib: 0, of_service: 9100 };
    assert_eq!(found("[P]\n\"Last Counter\"=dword:0\n\"Last Help\"=dword:1"), [of("TermService", low)]);
    assert_eq!(
        found("[P]\n\"Last Counter\"=dword:0000238e\n\"Last Help\"=dword:0000238f"),
        [(None, Kind::NamesEnd { highest: 9100, last_counter: 9102 })]
    );
}

#[test]
fn settings_that_are_not_usual() {
    let set = |name, value, usual| Kind::Setting { name, value, usual };
    for (change, kind) in [
        ("\"ExtCounterTestLevel\"=dword:1", set("ExtCounterTestLevel", 1, 4)),
        ("\"Configuration Flags\"=dword:2", set("Configuration Flags", 2, 0)),
        ("\"OpenProcedureWaitTime\"=dword:00004e20", set("OpenProcedureWaitTime", 20_000, 10_000)),
    ] {
        assert_eq!(kind.severity(), Severity::Note);
        assert_eq!(found(&format!("[P]\n{change}")), [(None, kind)], "{change}");
    }
    let kind = set("Collect Timeout", 60_000, 10_000);
    assert_eq!(found(&format!("{CONTOSO}\"Collect Timeout\"=dword:0000ea60")), [of("Contoso Orders", kind)]);
}

/// Names of all healthy services but those that `change` takes, with what it adds.
fn names(change: impl Fn(&mut Vec<String>)) -> String {
    let mut all = vec!["1".to_owned(), "1847".to_owned()];
    for index in (2..=9100).step_by(2) {
        all.extend([index.to_string(), format!("name {index}")]);
    }
    change(&mut all);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    format!("[P\\009]\n\"Counter\"={}", multi(&all))
}

fn place(names: &[String], index: u32) -> usize {
    names.iter().step_by(2).position(|text| *text == index.to_string()).unwrap() * 2
}

#[test]
fn names_that_are_damaged() {
    assert_eq!(found(&names(|_| {})), []);
    // A name is lost, and the next index stands for it.
    let lost = names(|all| drop(all.remove(place(all, 2264) + 1)));
    let kind = Kind::NamesDamaged { after: Some(2264), found: "name 2266".to_owned() };
    assert_eq!(found(&lost), [(None, kind)]);
    // A name is empty, and all readers end there.
    let empty = names(|all| {
        let at = place(all, 2264);
        all[at + 1].clear();
        all[at + 2].clear();
    });
    let kind = Kind::NamesDamaged { after: Some(2264), found: "name 2266".to_owned() };
    assert_eq!(found(&empty), [(None, kind)]);
    let odd = names(|all| all.extend(["9099".to_owned(), "help".to_owned()]));
    assert_eq!(found(&odd), [(None, Kind::NameOdd { index: 9099, name: "help".to_owned() })]);
}

#[test]
fn counters_without_names() {
    let without = |indices: &'static [u32]| {
        names(move |all| {
            for index in indices {
                let at = place(all, *index);
                all.drain(at..at + 2);
            }
        })
    };
    let kind = |missing| of("Contoso Orders", Kind::NamesMissing { range: RANGE, missing, of: 3 });
    assert_eq!(found(&without(&[2262, 2264, 2266])), [kind(3)]);
    assert_eq!(found(&without(&[2266])), [kind(1)]);
    // A provider may leave out one in the middle.
    assert_eq!(found(&without(&[2264])), []);
}

#[test]
fn a_query_has_the_names_where_the_registry_has_none() {
    let names = crate::synth::counters::names(&[(1, "1847"), (2, "System")]);
    let ends = Kind::NamesEnd { highest: 2, last_counter: 9100 };
    for (change, is_used) in [("", false), ("[-P\\009]\n", true)] {
        let registry = registry(change);
        let facts = Facts {
            registry: &registry,
            names: Some(&names),
            files: &Elsewhere,
            trials: &BTreeMap::new(),
            logged: &[],
        };
        let found = diagnose(&facts);
        assert_eq!(found.findings.iter().any(|finding| finding.kind == ends), is_used);
        assert_eq!(found.unchecked, []);
    }
}

#[test]
fn linkage() {
    let change = "[S\\.NET CLR Data\\Linkage]\n\"Export\"=\"one\"";
    let kind = Kind::LinkageType { found: "REG_SZ".to_owned() };
    assert_eq!(found(change), [of(".NET CLR Data", kind)]);
    let kind = Kind::LinkageMissing { library: "netfxperf.dll".to_owned(), others: 2 };
    assert_eq!(found("[-S\\.NET CLR Data\\Linkage]\n"), [of(".NET CLR Data", kind)]);
    // Two of three: none is the rule.
    assert_eq!(found("[-S\\.NET CLR Data\\Linkage]\n[-S\\.NET CLR Networking\\Linkage]\n"), []);
}

/// A machine whose DLLs are all in order, but one.
#[derive(Default)]
struct Machine {
    orders: Option<Library>,
    missing: &'static str,
}

const ORDERS: &str = r"C:\Program Files\Contoso\orders.dll";

fn image(bits: u32, exports: &[&str]) -> Library {
    let exports = exports.iter().map(|name| (*name).to_owned()).collect();
    Library::Image(Image { path: ORDERS.to_owned(), size: 1000, bits, exports })
}

impl Files for Machine {
    fn library(&self, library: &str) -> Library {
        match &self.orders {
            Some(orders) if library == r"%ProgramFiles%\Contoso\orders.dll" => orders.clone(),
            _ => Library::NotChecked,
        }
    }

    fn exists(&self, path: &str) -> Option<bool> {
        Some(path != self.missing)
    }
}

fn with_file(orders: Library, trials: &BTreeMap<String, Trial>) -> Vec<Kind> {
    let changes =
        format!("{CONTOSO}\"WbemAdapFileSize\"=dword:000003e8\n\"Library Validation Code\"=hex:01,02");
    let machine = Machine { orders: Some(orders), ..Machine::default() };
    found_with(&changes, &machine, trials, &[]).findings.into_iter().map(|finding| finding.kind).collect()
}

#[test]
fn the_file_of_a_dll() {
    let path = ORDERS.to_owned();
    let all = ["OpenOrders", "CollectOrders", "CloseOrders"];
    let trials =
        |step, failure| BTreeMap::from([("contoso orders".to_owned(), Trial::Failed { step, failure })]);
    let none = BTreeMap::new();
    assert_eq!(with_file(image(usize::BITS, &all), &none), []);
    assert_eq!(with_file(image(0, &all), &none), []);
    let library = r"%ProgramFiles%\Contoso\orders.dll".to_owned();
    assert_eq!(with_file(Library::Missing, &none), [Kind::LibraryMissing { library: library.clone() }]);
    assert_eq!(
        with_file(Library::NotAnImage { path: path.clone() }, &none),
        [Kind::NotAnImage { path: path.clone() }]
    );
    let wrong = Kind::WrongBits { path: path.clone(), bits: OTHER_BITS, wanted: usize::BITS };
    assert_eq!(with_file(image(OTHER_BITS, &[]), &none), [wrong]);
    let functions = vec!["CollectOrders".to_owned()];
    let missing = Kind::ExportsMissing { path: path.clone(), functions };
    assert_eq!(with_file(image(usize::BITS, &["OpenOrders", "CloseOrders", "other"]), &none), [missing]);
    // That it then does not load is no news.
    let fails = trials(Step::Load, Failure::NotLoaded { code: 126 });
    assert_eq!(with_file(Library::Missing, &fails), [Kind::LibraryMissing { library }]);
    // But of a file that is in order it is.
    let failed = Kind::TrialFailed { step: Step::Load, failure: Failure::NotLoaded { code: 126 } };
    assert_eq!(with_file(image(usize::BITS, &all), &fails), [failed]);
}

#[test]
fn a_file_that_has_changed() {
    let all = ["OpenOrders", "CollectOrders", "CloseOrders"];
    let Library::Image(mut new) = image(usize::BITS, &all) else { panic!() };
    new.size = 2000;
    let kind = Kind::LibraryChanged { path: ORDERS.to_owned(), size: 2000, size_before: 1000 };
    assert_eq!(kind.severity(), Severity::Note);
    assert_eq!(with_file(Library::Image(new), &BTreeMap::new()), [kind]);
}

#[test]
fn other_files() {
    let of = |missing| {
        let found = found_with("", &Machine { missing, orders: None }, &BTreeMap::new(), &[]);
        found.findings.into_iter().map(|finding| finding.kind).collect::<Vec<_>>()
    };
    let path = r"%SystemRoot%\System32\perfh009.dat";
    assert_eq!(of(path), [Kind::NameFileMissing { path: path.to_owned() }]);
    let path = r"%SystemRoot%\System32\contoso.exe";
    let provider = "{f34a91be-39a4-4c18-8b30-e36f4a1c4d11}".to_owned();
    assert_eq!(of(path), [Kind::ManifestProgramMissing { provider, path: path.to_owned() }]);
}

#[test]
fn trials() {
    let trial = |trial| {
        let trials = BTreeMap::from([("contoso orders".to_owned(), trial)]);
        found_with("", &Elsewhere, &trials, &[])
            .findings
            .into_iter()
            .map(|f| (f.service, f.kind))
            .collect::<Vec<_>>()
    };
    assert_eq!(trial(Trial::Works { objects: 1, bytes: 100 }), []);
    let failure = Failure::Crashed { code: Some(0xc000_0005) };
    let kind = Kind::TrialFailed { step: Step::Collect, failure: failure.clone() };
    assert_eq!(trial(Trial::Failed { step: Step::Collect, failure }), [of("Contoso Orders", kind)]);
}

/// As the event viewer shows it: the form of Windows 7, and the one with named fields.
const OLD: &str = r#"<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System>
  <Provider Name='Microsoft-Windows-Perflib' Guid='{13B197BD-7CEE-4B4E-8DD0-59314CE374CE}' EventSourceName='Perflib'/>
  <EventID Qualifiers='49152'>1010</EventID><Version>0</Version><Level>2</Level>
  <TimeCreated SystemTime='2026-11-20T08:00:00.000000000Z'/><Channel>Application</Channel></System>
  <UserData><EventXML xmlns:auto-ns3='http://x' xmlns='Perflib'><param1>C:\Contoso\orders.dll</param1><param2>contoso orders</param2>
  <binaryDataSize>8</binaryDataSize><binaryData>050000C000000000</binaryData></EventXML></UserData></Event>"#;
const NEW: &str = r#"<Event><System><Provider Name="Microsoft-Windows-Perflib"/><EventID>1008</EventID>
  <TimeCreated SystemTime="2026-11-21T08:00:00.0Z"/></System><EventData><Data Name="Service">R&amp;D</Data>
  <Data Name="Library">x.dll</Data><Data Name="ErrorCode">126</Data></EventData></Event>"#;

#[test]
fn events_are_read_from_xml() {
    let event = Logged::parse(OLD).unwrap();
    assert_eq!((&*event.provider, event.id), ("Microsoft-Windows-Perflib", 1010));
    assert_eq!((&*event.time, event.code), ("2026-11-20T08:00:00.000000000Z", Some(0xc000_0005)));
    assert!(event.texts.contains(&("param2".to_owned(), "contoso orders".to_owned())));
    let event = Logged::parse(NEW).unwrap();
    assert_eq!((event.id, event.code), (1008, Some(126)));
    assert_eq!(event.texts[0], ("Service".to_owned(), "R&D".to_owned()));
    for broken in [
        "",
        "<Event>",
        "<EventID>x</EventID>",
        "<Provider Name='a",
        "<Provider Name='a'/><EventID>",
        "<<>>=<a b=>",
    ] {
        assert_eq!(Logged::parse(broken), None, "{broken}");
    }
    for end in 0..OLD.len() {
        let _read_or_not = Logged::parse(&OLD[..end]);
    }
}

#[test]
fn events_of_a_kind_are_one_finding() {
    let (old, new) = (Logged::parse(OLD).unwrap(), Logged::parse(NEW).unwrap());
    let later = Logged { time: "2026-11-22T00:00:00Z".to_owned(), code: None, ..old.clone() };
    let found = found_with("", &Elsewhere, &BTreeMap::new(), &[old, later, new]).findings;
    let kind = |id, count, last: &str, code, texts: [&str; 2]| Kind::Logged {
        provider: "Microsoft-Windows-Perflib".to_owned(),
        id,
        count,
        last: last.to_owned(),
        code,
        texts: texts.map(str::to_owned).to_vec(),
    };
    let found: Vec<_> = found.into_iter().map(|finding| (finding.service, finding.kind)).collect();
    assert_eq!(
        found,
        [
            of(
                "Contoso Orders",
                kind(1010, 2, "2026-11-22T00:00:00Z", None, [r"C:\Contoso\orders.dll", "contoso orders"])
            ),
            of("R&D", kind(1008, 1, "2026-11-21T08:00:00.0Z", Some(126), ["R&D", "x.dll"])),
        ]
    );
}

#[test]
fn the_worst_comes_first() {
    let changes = "[P]\n\"Last Help\"=dword:1\n\"ExtCounterTestLevel\"=dword:1\n[S\\Contoso Orders\\Performance]\n\
                   \"Open\"=-\n[S\\.NET CLR Data\\Performance]\n\"Close\"=-\n\"Open Timeout\"=dword:0000ea60";
    let found: Vec<_> =
        found(changes).into_iter().map(|(service, kind)| (kind.severity(), service)).collect();
    let of = |severity, name: Option<&str>| (severity, name.map(str::to_owned));
    assert_eq!(
        found,
        [
            of(Severity::Error, Some(".NET CLR Data")),
            of(Severity::Error, Some("Contoso Orders")),
            of(Severity::Warning, None),
            of(Severity::Note, None),
            of(Severity::Note, Some(".NET CLR Data")),
        ]
    );
}

/// A DLL with these functions: the export directory with its addresses, names and numbers behind it, as linkers put them.
fn dll(machine: u16, functions: &[&str]) -> Vec<u8> {
    const RVA: u32 = 0x1000;
    let mut file = Pe::new(machine);
    let count = functions.len() as u32;
    let (addresses, names) = (RVA + 40, RVA + 40 + 4 * count);
    let numbers = names + 4 * count;
    let at = numbers + 2 * count;
    let mut places = Vec::new();
    let mut texts = Vec::new();
    for text in functions.iter().chain(&["x.dll"]) {
        places.push(at + texts.len() as u32);
        texts.extend([text.as_bytes(), b"\0"].concat());
    }
    let dll = places.pop().unwrap();
    let mut exports = words(&[0, 0, 0, dll, 1, count, count, addresses, names, numbers]);
    exports.extend(words(&vec![RVA; functions.len()]));
    exports.extend(words(&places));
    exports.extend((0..functions.len() as u16).flat_map(u16::to_le_bytes));
    exports.extend(texts);
    assert_eq!(file.put(&exports), RVA);
    file.with_directory(0, RVA, exports.len() as u32).finish()
}

#[test]
fn a_dll_is_read() {
    for (machine, bits) in [(0x8664, 64), (0xaa64, 64), (0x14c, 32), (0x1c4, 32), (0x200, 0)] {
        let file = dll(machine, &["OpenOrders", "CollectOrders"]);
        let Library::Image(image) = Library::parse("x.dll", &file) else { panic!("{machine:x}") };
        assert_eq!((image.bits, image.size), (bits, file.len() as u64));
        assert_eq!(image.exports.into_iter().collect::<Vec<_>>(), ["CollectOrders", "OpenOrders"]);
    }
    assert_eq!(Library::parse("x", b"text"), Library::NotAnImage { path: "x".to_owned() });
    let file = dll(0x8664, &["OpenOrders"]);
    for end in 0..file.len() {
        let _image_or_not = Library::parse("x", &file[..end]);
    }
}
