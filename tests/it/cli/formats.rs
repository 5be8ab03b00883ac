//! Every format in the list, through the command line.

use std::fs;
use std::path::Path;

use etwprof::report::format::ALL;

use crate::support::command::etwprof;

#[test]
fn every_format_is_written_by_its_ending_and_by_its_name_twice_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo.etl").display().to_string();
    for format in ALL {
        let named = folder.path().join("named");
        etwprof(["convert", &demo, "-q", "-f", format.name, "-o", &named.display().to_string()]).success();
        let named = fs::read(&named).unwrap();
        assert!(named.len() > 1000, "{}", format.name);
        for ending in format.endings {
            let file = folder.path().join(format!("x{ending}"));
            etwprof(["convert", &demo, "-q", "-o", &file.display().to_string()]).success();
            // Not shown in full: some are large, and no text.
            assert!(fs::read(&file).unwrap() == named, "{}: {ending}", format.name);
        }
    }
}
