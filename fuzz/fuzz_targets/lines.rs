//! Any PDB of IL, and any image with such a PDB, with IL or with precompiled code.
#![no_main]

use etwprof::symbols::read::dotnet::r2r::{R2rImage, own_metadata};
use etwprof::symbols::read::dotnet::lines::{ManagedPdb, embedded, il_offset};
use etwprof::symbols::read::pe::Image;
use libfuzzer_sys::fuzz_target;

fn lines(pdb: &[u8]) {
    let Ok(pdb) = ManagedPdb::open(pdb) else { return };
    for row in 0..50 {
        for il_offset in [0, 10, 100, u32::MAX] {
            if let Some(line) = pdb.line(0x0600_0000 | row, il_offset) {
                pdb.source_link(&line.file);
            }
        }
    }
}

fuzz_target!(|file: &[u8]| {
    lines(file);
    let Ok(image) = Image::parse(file) else { return };
    if let Some(Ok(pdb)) = embedded(&image) {
        lines(&pdb);
    }
    let own = own_metadata(&image);
    let Ok(mut image) = R2rImage::parse(&image) else { return };
    for round in ["without IL", "with IL"] {
        for method in image.methods().take(1000) {
            let spelled = method.spell();
            assert_eq!(spelled.name, method.name(), "{round}");
            for assembly in spelled.missing {
                let _which_build = image.reference(assembly);
            }
        }
        if let Ok(metadata) = &own {
            let _identity = (metadata.mvid(), metadata.assembly_version());
            image.add_reference(metadata.clone());
        }
    }
    for method in image.methods().take(1000) {
        let map = method.il_map();
        assert!(map.is_sorted_by_key(|&(native, _)| native));
        assert_eq!(il_offset(&map, 100).is_some(), !map.is_empty());
        let _definition = method.definition();
    }
});
