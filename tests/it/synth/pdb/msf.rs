//! The container: numbered streams in blocks of one size. (llvm.org/docs/PDB/MsfFile.html)
//!
//! Block 0 is the superblock, blocks 1 and 2 say which blocks are free. Then come the streams, the directory with their
//! sizes and blocks, and the list of the directory's own blocks.

use super::bytes;

const BLOCK: usize = 512;
const FREE_MAP: usize = 1;
const FIRST: usize = 3;

pub(super) fn file(streams: &[Vec<u8>]) -> Vec<u8> {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    // Puts bytes into new blocks and gives their numbers.
    let mut put = |contents: &[u8]| -> Vec<u32> {
        let number = |block: &[u8]| {
            let mut block = block.to_owned();
            block.resize(BLOCK, 0);
            blocks.push(block);
            u32::try_from(FIRST + blocks.len() - 1).expect("few blocks")
        };
        contents.chunks(BLOCK).map(number).collect()
    };
    let size = |stream: &Vec<u8>| u32::try_from(stream.len()).expect("a short stream");
    let mut directory = bytes().u32(u32::try_from(streams.len()).expect("few streams"));
    directory = streams.iter().fold(directory, |bytes, stream| bytes.u32(size(stream)));
    for stream in streams {
        directory = put(stream).into_iter().fold(directory, super::Bytes::u32);
    }
    let directory = directory.finish();
    let numbers = put(&directory).into_iter().fold(bytes(), super::Bytes::u32).finish();
    let [list] = put(&numbers)[..] else { panic!("the directory has more blocks than fit in a list") };
    let count = FIRST + blocks.len();
    // Further on, each 512 blocks have free maps of their own.
    assert!(count <= BLOCK, "{count} blocks are too many for one free map");

    let mut free: Vec<u8> = vec![0xFF; BLOCK];
    (0..count).for_each(|block| free[block / 8] &= !(1 << (block % 8)));
    let superblock = bytes()
        .raw(b"Microsoft C/C++ MSF 7.00\r\n\x1ADS\0\0\0")
        .u32(BLOCK as u32)
        .u32(FREE_MAP as u32)
        .u32(count as u32)
        .u32(directory.len() as u32)
        .u32(0)
        .u32(list);
    let superblock = superblock.zeros(BLOCK - 56).finish();
    [superblock, free.clone(), free].into_iter().chain(blocks).collect::<Vec<_>>().concat()
}
