//! What the tests of the symbol store share: made-up symbol files with an identity, cabinets, a scripted server.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use etwprof::debug_id::DebugId;
use etwprof::guid::Guid;
use etwprof::symbols::find::key::{FileId, FileKey};
use etwprof::symbols::find::lookup::Checked;
use etwprof::symbols::find::options::{Proxy, StoreOptions, Timeouts};
use etwprof::symbols::find::path::SymbolPath;
use etwprof::symbols::find::store::Store;

// ---- keys

/// An identity by the 16 bytes of its GUID.
pub fn debug_id(guid: [u8; 16], age: u32) -> DebugId {
    DebugId { guid: Guid::from_bytes(&guid), age }
}

/// The key of a PDB by the 16 bytes of its GUID.
pub fn pdb_key(path: &str, guid: [u8; 16], age: u32) -> FileKey {
    FileKey::pdb(path, debug_id(guid, age))
}

// ---- made-up symbol files: a line with the index and the length of all, then filling

/// A whole file of this identity, `length` bytes long.
pub fn symbol_file(index: &str, length: usize) -> Vec<u8> {
    let mut file = format!("ID {index} {length}\n").into_bytes();
    assert!(file.len() <= length);
    file.extend((file.len()..length).map(|i| ((i * i) >> 7) as u8));
    file
}

/// The check of made-up files: identity and length.
pub fn check(key: &FileKey) -> impl Fn(&Path) -> Checked + Sync + use<> {
    let wanted = key.index();
    move |path| {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) => return Checked::Unreadable(e.to_string()),
        };
        let line = bytes.split(|&b| b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        let ["ID", index, length] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Checked::Unreadable("no symbol file".to_owned());
        };
        if length.parse() != Ok(bytes.len()) {
            Checked::Unreadable(format!("{} bytes instead of {length}", bytes.len()))
        } else if index == wanted {
            Checked::Matches
        } else {
            Checked::Differs(index.to_owned())
        }
    }
}

/// The check of real files: the GUID and age of a PDB, time stamp and size of an image, read from the file.
pub fn check_real(key: &FileKey) -> impl Fn(&Path) -> Checked + Sync + use<> {
    let wanted = key.id();
    move |path| match fs::read(path).ok().and_then(|bytes| real_id(&bytes)) {
        Some(id) if id == wanted => Checked::Matches,
        Some(id) => Checked::Differs(id.to_string()),
        None => Checked::Unreadable("neither a PDB nor an image".to_owned()),
    }
}

fn real_id(bytes: &[u8]) -> Option<FileId> {
    if bytes.starts_with(b"BSJB") {
        // A portable PDB: the id is the first 20 bytes of the stream #Pdb.
        let at = bytes.windows(5).position(|w| w == b"#Pdb\0")?;
        let start = u32_at(bytes, at - 8)? as usize;
        let guid = bytes.get(start..start + 16)?.try_into().ok()?;
        return Some(FileId::Pdb(debug_id(guid, u32::MAX)));
    }
    if bytes.starts_with(b"MZ") {
        let pe = u32_at(bytes, 0x3C)? as usize;
        return Some(FileId::Image {
            timestamp: u32_at(bytes, pe + 8)?,
            size_of_image: u32_at(bytes, pe + 80)?,
        });
    }
    // MSF: the directory lists the sizes of the streams, then their pages.
    let page = u32_at(bytes, 32)? as usize;
    if u32_at(bytes, 40)? as usize * page != bytes.len() {
        return None;
    }
    let size = u32_at(bytes, 44)? as usize;
    let map = u32_at(bytes, 52)? as usize * page;
    let directory: Vec<u8> = (0..size.div_ceil(page))
        .map(|i| Some(u32_at(bytes, map + 4 * i)? as usize * page))
        .map(|start| bytes.get(start?..start? + page))
        .collect::<Option<Vec<_>>>()?
        .concat();
    let streams = u32_at(&directory, 0)? as usize;
    let pages = |stream: usize| Some((u32_at(&directory, 4 + 4 * stream)? as usize).div_ceil(page));
    let first_page = |stream: usize| {
        let before = (0..stream).map(pages).sum::<Option<usize>>()?;
        Some(u32_at(&directory, 4 + 4 * streams + 4 * before)? as usize * page)
    };
    let (info, debug) = (first_page(1)?, first_page(3)?);
    let guid = bytes.get(info + 12..info + 28)?.try_into().ok()?;
    // The age that images name is that of the debug stream.
    Some(FileId::Pdb(debug_id(guid, u32_at(bytes, debug + 8)?)))
}

/// The PDB that an image names in its RSDS record.
pub fn pdb_of_image(image: &Path) -> FileKey {
    let bytes = fs::read(image).unwrap();
    let at = bytes.windows(4).position(|w| w == b"RSDS").expect("an RSDS record");
    let guid = bytes[at + 4..at + 20].try_into().unwrap();
    let name = bytes[at + 24..].split(|&b| b == 0).next().unwrap();
    pdb_key(std::str::from_utf8(name).unwrap(), guid, u32_at(&bytes, at + 20).unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

// ---- cabinets

#[derive(Clone, Copy, Debug)]
pub enum Packing {
    Stored,
    MsZip,
}

/// A cabinet with one folder that holds these files.
pub fn cabinet(files: &[(&str, &[u8])], packing: Packing) -> Vec<u8> {
    let stream: Vec<u8> = files.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    let mut compress = flate2::Compress::new(flate2::Compression::default(), false);
    let mut blocks: Vec<(Vec<u8>, u16)> = Vec::new();
    let mut before: &[u8] = &[];
    for block in stream.chunks(32 * 1024) {
        let data = match packing {
            Packing::Stored => block.to_vec(),
            Packing::MsZip => {
                compress.reset();
                if !before.is_empty() {
                    compress.set_dictionary(before).unwrap();
                }
                let mut data = Vec::with_capacity(40_000);
                compress.compress_vec(block, &mut data, flate2::FlushCompress::Finish).unwrap();
                [b"CK", data.as_slice()].concat()
            }
        };
        blocks.push((data, block.len() as u16));
        before = block;
    }
    let blocks: Vec<_> = blocks.iter().map(|(data, size)| (data.as_slice(), *size)).collect();
    let sizes: Vec<_> = files.iter().map(|(name, bytes)| (*name, bytes.len() as u32)).collect();
    layout(&sizes, if matches!(packing, Packing::Stored) { 0 } else { 1 }, &blocks)
}

/// A cabinet with one file and any blocks: compressed bytes, and the size they are said to expand to.
pub fn cabinet_of_blocks(name: &str, method: u16, blocks: &[(&[u8], u16)]) -> Vec<u8> {
    let size = blocks.iter().map(|(_, size)| u32::from(*size)).sum();
    layout(&[(name, size)], method, blocks)
}

fn layout(files: &[(&str, u32)], method: u16, blocks: &[(&[u8], u16)]) -> Vec<u8> {
    let mut members = Vec::new();
    let mut start = 0;
    for (name, size) in files {
        members.extend(size.to_le_bytes());
        members.extend(u32::to_le_bytes(start));
        members.extend([0, 0, 0x21, 0x53, 0x0D, 0xB2, 0x20, 0]);
        members.extend(name.as_bytes());
        members.push(0);
        start += size;
    }
    let mut data = Vec::new();
    for (block, expanded) in blocks {
        let counts = [(block.len() as u16).to_le_bytes(), expanded.to_le_bytes()].concat();
        data.extend((sum(block) ^ sum(&counts)).to_le_bytes());
        data.extend(counts);
        data.extend(*block);
    }
    let first_member = 36 + 8;
    let first_block = first_member + members.len();
    let mut cab = b"MSCF\0\0\0\0".to_vec();
    for field in [(first_block + data.len()) as u32, 0, first_member as u32, 0] {
        cab.extend(field.to_le_bytes());
    }
    cab.extend([3, 1, 1, 0, files.len() as u8, 0, 0, 0, 7, 0, 0, 0]);
    cab.extend((first_block as u32).to_le_bytes());
    cab.extend((blocks.len() as u16).to_le_bytes());
    cab.extend(method.to_le_bytes());
    [cab, members, data].concat()
}

fn sum(data: &[u8]) -> u32 {
    data.chunks(4).fold(0, |sum, chunk| match *chunk {
        [a, b, c, d] => sum ^ u32::from_le_bytes([a, b, c, d]),
        [a, b, c] => sum ^ u32::from_be_bytes([0, a, b, c]),
        [a, b] => sum ^ u32::from_be_bytes([0, 0, a, b]),
        _ => sum ^ u32::from(chunk[0]),
    })
}

// ---- the server

/// One answer of the scripted server.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A status with a body.
    Status(u16, Vec<u8>),
    /// 200 with the file.
    File(Vec<u8>),
    /// Headers and a body of one's own: `HTTP/1.1 200 OK\r\n…\r\n\r\n…`. Then the connection ends.
    Raw(Vec<u8>),
    /// The same, and then nothing more comes, but the connection stays.
    RawThenSilence(Vec<u8>),
    /// The file in pieces with pauses.
    Slow(Vec<u8>, Duration),
    /// Chunks without end.
    Endless,
    /// A redirect.
    Redirect(String),
    /// None: the connection ends.
    Drop,
    /// This answer after a while.
    Late(Duration, Box<Answer>),
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The path, or whatever stands in its place.
    pub path: String,
    /// The headers, as they are written.
    pub headers: Vec<(String, String)>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }
}

/// A server on this machine that answers as scripted and notes what it was asked.
pub struct Server {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// `answer` gets the path of a request and how often that path was asked before.
    pub fn start(answer: impl Fn(&str, usize) -> Answer + Send + Sync + 'static) -> Server {
        Server::listening(TcpListener::bind("127.0.0.1:0").unwrap(), move |asked, before| {
            answer(&asked.path, before)
        })
    }

    /// `answer` gets the whole request.
    pub fn answering(answer: impl Fn(&Asked, usize) -> Answer + Send + Sync + 'static) -> Server {
        Server::listening(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
    }

    pub fn listening(
        listener: TcpListener,
        answer: impl Fn(&Asked, usize) -> Answer + Send + Sync + 'static,
    ) -> Server {
        let address = listener.local_addr().unwrap().to_string();
        let (asked, stop) = (Arc::<Mutex<Vec<Asked>>>::default(), Arc::new(AtomicBool::new(false)));
        let (log, stopped, answer) = (Arc::clone(&asked), Arc::clone(&stop), Arc::new(answer));
        let connections = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&connections);
        thread::spawn(move || {
            for connection in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                counted.fetch_add(1, Ordering::Relaxed);
                let (log, stopped, answer) = (Arc::clone(&log), Arc::clone(&stopped), Arc::clone(&answer));
                thread::spawn(move || {
                    let _ = serve(connection.unwrap(), &log, &stopped, &*answer);
                });
            }
        });
        Server { address, asked, connections, stop }
    }

    /// A server that has these files: path and contents.
    pub fn with_files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Server {
        let files: HashMap<String, Vec<u8>> = files.into_iter().collect();
        Server::start(move |path, _| match files.get(path) {
            Some(file) => Answer::File(file.clone()),
            None => Answer::Status(404, b"none".to_vec()),
        })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The paths asked so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|asked| asked.path.clone()).collect()
    }

    /// The same with headers.
    pub fn requests(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

fn serve(
    mut connection: TcpStream,
    log: &Mutex<Vec<Asked>>,
    stopped: &AtomicBool,
    answer: &dyn Fn(&Asked, usize) -> Answer,
) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection.try_clone()?);
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut headers = Vec::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            match header.trim().split_once(':') {
                Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
                None => break,
            }
        }
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let asked = Asked { path, headers };
        let before = {
            let mut log = log.lock().unwrap();
            let before = log.iter().filter(|known| known.path == asked.path).count();
            log.push(asked.clone());
            before
        };
        let head =
            |status: u16, length: usize| format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n");
        let mut answer = answer(&asked, before);
        while let Answer::Late(pause, then) = answer {
            thread::sleep(pause);
            answer = *then;
        }
        match answer {
            Answer::Drop | Answer::Late(..) => return connection.shutdown(Shutdown::Both),
            Answer::Status(status, body) => {
                connection.write_all(&[head(status, body.len()).as_bytes(), &body].concat())?;
            }
            Answer::File(body) => {
                connection.write_all(head(200, body.len()).as_bytes())?;
                connection.write_all(&body)?;
            }
            Answer::Raw(bytes) => {
                connection.write_all(&bytes)?;
                return connection.shutdown(Shutdown::Both);
            }
            Answer::RawThenSilence(bytes) => {
                connection.write_all(&bytes)?;
                while !stopped.load(Ordering::Relaxed) && still_open(&connection)? {
                    thread::sleep(Duration::from_millis(20));
                }
                return Ok(());
            }
            Answer::Slow(body, pause) => {
                connection.write_all(head(200, body.len()).as_bytes())?;
                for piece in body.chunks(body.len().div_ceil(8)) {
                    thread::sleep(pause);
                    connection.write_all(piece)?;
                }
            }
            Answer::Endless => {
                connection.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                let chunk = [b"10000\r\n", [7; 0x10000].as_slice(), b"\r\n"].concat();
                loop {
                    connection.write_all(&chunk)?;
                }
            }
            Answer::Redirect(to) => {
                let answer = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
                connection.write_all(answer.as_bytes())?;
            }
        }
    }
}

fn still_open(connection: &TcpStream) -> std::io::Result<bool> {
    connection.set_read_timeout(Some(Duration::from_millis(1)))?;
    Ok(!matches!((&*connection).read(&mut [0]), Ok(0)))
}

// ---- stores

/// Options that neither leave this machine nor wait long.
pub fn options(cache: &Path) -> StoreOptions {
    StoreOptions {
        user_cache: Some(cache.to_owned()),
        timeouts: Timeouts {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(5),
            stall: Duration::from_secs(5),
        },
        pause: Duration::from_millis(5),
        outage: Duration::from_millis(300),
        proxy: Proxy::Direct,
        ..StoreOptions::default()
    }
}

pub fn store(path: &str, options: StoreOptions) -> Store {
    Store::new(&SymbolPath::parse(path).unwrap(), options)
}

/// Every file below a folder, relative to it with `/`, sorted. What the cache keeps for itself counts only when
/// half-written.
pub fn files(folder: &Path) -> Vec<String> {
    fn visit(folder: &Path, root: &Path, into: &mut Vec<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, root, into);
            } else {
                into.push(path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    let mut found = Vec::new();
    visit(folder, folder, &mut found);
    found.retain(|path| !path.starts_with(".etwprof/failed/"));
    found.sort();
    found
}
