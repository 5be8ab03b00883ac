//! What the merge step adds to a trace: the identity of images and the paths of the system. FULL records.
//!
//! Records about an image have the time of an image event and lie before it: FileVersion, ImageID, DbgID.

use super::{Event, Guid, IntoEvent, NO_ID, guid};

fn image_task(kind: u8, version: u16, payload: impl Fn(super::Bytes) -> super::Bytes + 'static) -> Event {
    Event::classic(guid("b3e675d7-2554-4f18-830b-2762732560de"), kind, version, payload).by(4, NO_ID)
}

/// The file of an image: its original name and the time stamp of its PE header.
pub fn image_id(process: u32, base: u64, size: u64, time_date_stamp: u32, original_name: &str) -> Event {
    let name = original_name.to_owned();
    image_task(0, 2, move |bytes| bytes.ptr(base).ptr(size).u32(process).u32(time_date_stamp).utf16z(&name))
}

/// The image has no debug record.
pub fn dbg_id_none(process: u32, base: u64) -> Event {
    image_task(32, 2, move |bytes| bytes.ptr(base).u32(process))
}

/// The PDB of an image.
pub fn dbg_id_rsds(process: u32, base: u64, id: Guid, age: u32, pdb: &str) -> Event {
    dbg_id(36, process, base, id, age, pdb)
}

/// The second, managed PDB of a precompiled image.
pub fn dbg_id_il_rsds(process: u32, base: u64, id: Guid, age: u32, pdb: &str) -> Event {
    dbg_id(37, process, base, id, age, pdb)
}

fn dbg_id(kind: u8, process: u32, base: u64, id: Guid, age: u32, pdb: &str) -> Event {
    let pdb = pdb.to_owned();
    image_task(kind, 2, move |bytes| bytes.ptr(base).u32(process).guid(id).u32(age).ansiz(&pdb))
}

/// The managed PDB is a portable one.
pub fn portable_pdb(process: u32, base: u64, time_date_stamp: u32) -> Event {
    image_task(38, 2, move |bytes| bytes.ptr(base).u32(process).u32(time_date_stamp).u16(0x0100).u16(0x504d))
}

/// The image's time stamp is a hash.
pub fn deterministic(process: u32, base: u64) -> Event {
    image_task(40, 1, move |bytes| bytes.ptr(base).u32(process))
}

/// The version resource of an image: original name, description, version, company.
pub fn file_version(size: u32, time_date_stamp: u32, name: &str, version: &str) -> Event {
    let [name, version] = [name, version].map(str::to_owned);
    image_task(64, 0, move |bytes| {
        let texts = [
            &name,    // original file name
            "",       // description
            &version, // file version
            &version, // the same as four numbers
            "1033",   // language
            "",       // product
            "Synth",  // company
            &version, // product version
            "",       // file id
            "",       // program id
        ];
        texts.into_iter().fold(bytes.u32(size).u32(time_date_stamp), super::Bytes::utf16z)
    })
}

fn config_task(kind: u8, payload: impl Fn(super::Bytes) -> super::Bytes + 'static) -> Event {
    Event::classic(guid("9b79ee91-b5fd-41c0-a243-4248e266e9d0"), kind, 0, payload).by(0, 0)
}

/// The system's build: when it was installed (FILETIME), the laboratory's name for it, the product.
pub fn build_info(installed: i64, lab: &str, product: &str) -> Event {
    let [lab, product] = [lab, product].map(str::to_owned);
    config_task(32, move |bytes| bytes.i64(installed).utf16z(&lab).utf16z(&product))
}

/// `C:\Windows\system32` and `C:\Windows\`.
pub fn system_paths(system: &str, windows: &str) -> Event {
    let [system, windows] = [system, windows].map(str::to_owned);
    config_task(33, move |bytes| bytes.utf16z(&system).utf16z(&windows))
}

/// A volume without a drive letter.
pub fn unknown_volume(device: &str) -> Event {
    let device = device.to_owned();
    config_task(34, move |bytes| bytes.utf16z(&device))
}

/// `\Device\HarddiskVolume3\` is `C:\`.
pub fn volume_mapping(nt: &str, dos: &str) -> Event {
    let [nt, dos] = [nt, dos].map(str::to_owned);
    config_task(35, move |bytes| bytes.utf16z(&nt).utf16z(&dos))
}
