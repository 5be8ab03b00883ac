use super::names::TypeToken;
use super::signature::{NoModules, Scope, Spelling, TypeWriter, skip_type};
use super::tables::Table;
use super::{Metadata, MetadataError};
use crate::symbols::read::dotnet::cursor::Cursor;

/// A root with the given tables (number, rows, bytes), strings and blobs; all widths are 2.
fn root(tables: &[(u32, u32, &[u8])], strings: &[u8], blobs: &[u8]) -> Vec<u8> {
    let present: u64 = tables.iter().map(|(number, ..)| 1u64 << number).sum();
    let mut stream = vec![0, 0, 0, 0, 2, 0, 0, 1];
    stream.extend(present.to_le_bytes());
    stream.extend(0u64.to_le_bytes());
    tables.iter().for_each(|(_, rows, _)| stream.extend(rows.to_le_bytes()));
    tables.iter().for_each(|(.., bytes)| stream.extend_from_slice(bytes));
    let mut root = b"BSJB\x01\0\x01\0\0\0\0\0\x04\0\0\0v4.0\0\0\x03\0".to_vec();
    let mut start = root.len() + 12 + 20 + 16;
    let streams: [(&[u8], &[u8]); 3] =
        [(b"#~\0\0", &stream), (b"#Strings\0\0\0\0", strings), (b"#Blob\0\0\0", blobs)];
    for (name, bytes) in streams {
        root.extend((start as u32).to_le_bytes());
        root.extend((bytes.len() as u32).to_le_bytes());
        root.extend(name);
        start += bytes.len();
    }
    streams.iter().for_each(|(_, bytes)| root.extend_from_slice(bytes));
    root
}

fn type_name(metadata: &Metadata<'_>, signature: &'static [u8]) -> (Option<()>, String) {
    let mut out = String::new();
    let mut writer = TypeWriter::new(&NoModules, Scope::Here(metadata), Spelling::Name);
    let done = writer.push_type(&mut Cursor::new(signature, 0), &mut out);
    (done, out)
}

#[test]
fn nested_references_and_escapes() {
    // Row 1: N.A (scope: an assembly), row 2: B+C in it.
    let rows = [6, 0, 1, 0, 3, 0, 1 << 2 | 3, 0, 5, 0, 0, 0];
    let root = root(&[(1, 2, &rows)], b"\0A\0N\0B+C\0", &[0]);
    let metadata = Metadata::parse(&root).unwrap();
    let mut out = String::new();
    assert_eq!(metadata.push_type_name(TypeToken::Ref(2), &mut out), Some(()));
    assert_eq!(out, "N.A+B\\+C");
    let (done, name) = type_name(&metadata, &[0x1D, 0x14, 0x15, 0x12, 5, 2, 0x08, 0x3E, 2, 0, 0]);
    assert_eq!((done, name.as_str()), (Some(()), "N.A[System.Int32,System.__Canon][,][]"));
}

#[test]
fn types_that_enclose_themselves_have_no_name() {
    let reference = [1 << 2 | 3, 0, 1, 0, 0, 0];
    let definition = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0];
    let nested = [1, 0, 1, 0];
    let root = root(&[(1, 1, &reference), (2, 1, &definition), (0x29, 1, &nested)], b"\0A\0", &[0]);
    let metadata = Metadata::parse(&root).unwrap();
    for token in [TypeToken::Ref(1), TypeToken::Def(1)] {
        let mut out = String::new();
        assert_eq!(metadata.push_type_name(token, &mut out), None);
        assert_eq!(out, "");
    }
}

/// A type specification that holds itself twice would double with each level.
#[test]
fn specifications_that_hold_themselves_end() {
    let blob = [0, 7, 0x15, 0x12, 6, 2, 0x12, 6, 0x12, 6, 0];
    let root = root(&[(0x1B, 1, &[1, 0])], &[0], &blob);
    let metadata = Metadata::parse(&root).unwrap();
    let (done, name) = type_name(&metadata, &[0x12, 6]);
    assert_eq!(done, None);
    assert!(name.len() < 1000);
}

#[test]
fn deep_signatures_end() {
    let deep = vec![0x1D; 1_000_000];
    assert_eq!(skip_type(&mut Cursor::new(&deep, 0)), None);
    let wide = [0x15, 0x12, 4, 0xDF, 0xFF, 0xFF, 0xFF, 0x08, 0x08];
    assert_eq!(skip_type(&mut Cursor::new(&wide, 0)), None);
    let lists = [0x14, 0x08, 1, 0xDF, 0xFF, 0xFF, 0xFF];
    assert_eq!(skip_type(&mut Cursor::new(&lists, 0)), None);
}

#[test]
fn rows_beyond_the_stream_are_not_there() {
    let root = root(&[(1, 1000, &[0; 12])], &[0], &[0]);
    let metadata = Metadata::parse(&root).unwrap();
    assert_eq!(metadata.tables().rows(Table::TypeRef), 2);
    assert_eq!(metadata.tables().cell(Table::TypeRef, 3, 0), None);
    assert_eq!(metadata.tables().cell(Table::TypeRef, 0, 0), None);
    assert_eq!(metadata.tables().cell(Table::TypeRef, 1, 3), None);
}

#[test]
fn what_is_not_metadata() {
    assert_eq!(Metadata::parse(b"").unwrap_err(), MetadataError::Signature);
    assert!(matches!(Metadata::parse(b"BSJB\x01\0").unwrap_err(), MetadataError::Cut(_)));
    let no_streams = b"BSJB\x01\0\x01\0\0\0\0\0\x04\0\0\0v4.0\0\0\0\0";
    assert_eq!(Metadata::parse(no_streams).unwrap_err(), MetadataError::NoTables);
    let whole = root(&[(1, 1, &[0; 6])], &[0], &[0]);
    for len in 0..whole.len() {
        // Cut anywhere: an error, or tables without the last rows.
        if let Ok(metadata) = Metadata::parse(&whole[..len]) {
            assert!(metadata.tables().rows(Table::TypeRef) <= 1);
        }
    }
}
