//! Seeds for the fuzz targets: `cargo test --test it seeds -- --ignored` writes them to `fuzz/corpus`.

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{everything, small};
use crate::synth::{Etl, START, xpress};

#[test]
#[ignore = "writes the seeds of the fuzz targets"]
fn seeds() {
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    };
    write("etl", "small", &small(false));
    write("etl", "small-compressed", &small(true));
    for (number, event) in everything().into_iter().enumerate() {
        let file = Etl::new().buffer_size(2048).event(0, START + 5, event.clone()).finish();
        write("etl", &format!("record-{number}"), &file);
        // The payload of a record without ids is behind its first 16 bytes.
        write(
            "events",
            &format!("payload-{number}"),
            &event.record(1, 8)[16.min(event.record(1, 8).len())..],
        );
    }
    for compressed in [false, true] {
        let records = small(compressed);
        write("xpress", &format!("{compressed}"), &xpress::compress(&records));
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        archive.start_file("a.etl", SimpleFileOptions::default()).unwrap();
        archive.write_all(&records).unwrap();
        archive.start_file("b.etl", SimpleFileOptions::default()).unwrap();
        archive.write_all(&records).unwrap();
        write("zip", &format!("{compressed}.zip"), &archive.finish().unwrap().into_inner());
    }
}
