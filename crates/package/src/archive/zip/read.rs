//! Reads a zip that is exactly what it seems; see the module above for what is refused.

use crate::archive::{Budget, Files, is_bomb, read_sized};
use crate::names::{PathSet, check_path};
use crate::text::shown;
use crate::{Limits, Problem, Report, Rule};

use super::{
    CENTRAL_BYTES, CENTRAL_SIGNATURE, END_BYTES, END_SIGNATURE, FLAG_DESCRIPTOR, FLAGS_REFUSED,
    LOCAL_BYTES, LOCAL_SIGNATURE, METHOD_DEFLATE, METHOD_STORED, METHOD_ZSTD,
};

/// Reads all files. Nothing is decompressed before [`inspect`] has found nothing wrong.
pub(crate) fn read(archive: &[u8], limits: &Limits) -> Result<Files, Report> {
    let mut report = Report::new(limits);
    let mut files = Files::new();
    let (entries, directory_at) = inspect(archive, limits)?;
    for entry in entries.iter().filter(|entry| !entry.is_folder()) {
        match entry.unpack(archive, directory_at) {
            Ok(bytes) => drop(files.insert(entry.path.clone(), bytes)),
            Err(problem) => report.push(problem),
        }
    }
    match report.has_errors() {
        true => Err(report),
        false => Ok(files),
    }
}

/// Whether an archive would pass all rules that do not need its data.
pub(crate) fn check(archive: &[u8], limits: &Limits) -> Result<(), Report> {
    inspect(archive, limits).map(|_| ())
}

/// Reads the headers of all entries and reports their problems together.
fn inspect(archive: &[u8], limits: &Limits) -> Result<(Vec<Entry>, usize), Report> {
    let (entries, directory_at) = central_directory(archive, limits)?;
    let mut report = Report::new(limits);
    let mut paths = PathSet::default();
    let mut budget = Budget::new(limits);
    let mut spans = Vec::with_capacity(entries.len());
    for entry in &entries {
        match entry.locate(archive, directory_at) {
            Ok(span) => spans.push(span),
            Err(problem) => report.push(problem),
        }
        if let Err(problem) = entry.check(limits) {
            report.push(problem);
        } else if !entry.is_folder() {
            paths.add(&entry.path, &mut report);
        }
        if let Err(problem) = budget.spend(&shown(&entry.path), entry.unpacked_bytes) {
            report.push(problem);
        }
    }
    if !report.has_errors() {
        check_layout(&mut spans, directory_at)?;
    }
    match report.has_errors() {
        true => Err(report),
        false => Ok((entries, directory_at)),
    }
}

/// One entry of the central directory.
struct Entry {
    path: String,
    flags: u16,
    method: u16,
    crc: u32,
    packed_bytes: u64,
    unpacked_bytes: u64,
    unix_mode: u32,
    header_at: usize,
}

/// Which bytes of the archive an entry takes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    start: usize,
    data: usize,
    end: usize,
    has_descriptor: bool,
}

fn central_directory(archive: &[u8], limits: &Limits) -> Result<(Vec<Entry>, usize), Report> {
    let broken = |message: &str| Report::from(Problem::error(Rule::NotAnArchive, "", message));
    let end_at = archive.len().checked_sub(END_BYTES);
    let end_at = end_at.ok_or_else(|| broken("too short to be a zip archive"))?;
    let end = Fields(&archive[end_at..]);
    if end.u32(0) != Some(END_SIGNATURE) || end.u16(20) != Some(0) {
        return Err(broken(
            "the zip archive is cut off, or a comment or other data follows its end",
        ));
    }
    let (count, size, at) = match (end.u16(10), end.u32(12), end.u32(16)) {
        (Some(count), Some(size), Some(at)) => (count, size as usize, at as usize),
        _ => return Err(broken("the zip archive is cut off")),
    };
    if end.u32(4) != Some(0) || end.u16(8) != Some(count) {
        let message = "is one part of a split zip archive";
        return Err(Problem::error(Rule::UnsupportedArchive, "", message).into());
    }
    if at.checked_add(size) != Some(end_at) {
        return Err(broken(
            "the zip directory is not right before its end record (or is in zip64 format)",
        ));
    }
    if usize::from(count) > limits.entries_max {
        let message = format!(
            "{count} entries; at most {} are allowed",
            limits.entries_max
        );
        return Err(Problem::error(Rule::EntryCount, "", message).into());
    }
    let mut entries = vec![];
    let mut rest = &archive[at..end_at];
    while !rest.is_empty() {
        let (entry, after) =
            Entry::parse(rest).ok_or_else(|| broken("the zip directory is damaged"))?;
        entries.push(entry);
        rest = after;
        if entries.len() > usize::from(count) {
            break;
        }
    }
    if entries.len() != usize::from(count) {
        return Err(broken(
            "the zip directory does not hold as many entries as it says",
        ));
    }
    Ok((entries, at))
}

impl Entry {
    fn parse(bytes: &[u8]) -> Option<(Entry, &[u8])> {
        let fields = Fields(bytes);
        if fields.u32(0)? != CENTRAL_SIGNATURE {
            return None;
        }
        let name_bytes = usize::from(fields.u16(28)?);
        let after_name = usize::from(fields.u16(30)?) + usize::from(fields.u16(32)?);
        let name = bytes.get(CENTRAL_BYTES..CENTRAL_BYTES + name_bytes)?;
        let entry = Entry {
            path: String::from_utf8_lossy(name).into_owned(),
            flags: fields.u16(8)?,
            method: fields.u16(10)?,
            crc: fields.u32(16)?,
            packed_bytes: u64::from(fields.u32(20)?),
            unpacked_bytes: u64::from(fields.u32(24)?),
            unix_mode: fields.u32(38)? >> 16,
            header_at: fields.u32(42)? as usize,
        };
        let rest = bytes.get(CENTRAL_BYTES + name_bytes + after_name..)?;
        Some((entry, rest))
    }

    fn is_folder(&self) -> bool {
        self.path.ends_with('/')
    }

    /// The rules that need only the header.
    fn check(&self, limits: &Limits) -> Result<(), Problem> {
        check_path(self.path.strip_suffix('/').unwrap_or(&self.path))?;
        let refuse = |rule, message: &str| Err(Problem::error(rule, &*self.path, message));
        const TYPE_MASK: u32 = 0o170_000;
        let expected = match self.is_folder() {
            true => 0o040_000,
            false => 0o100_000,
        };
        let kind = self.unix_mode & TYPE_MASK;
        if kind != 0 && kind != expected {
            return refuse(Rule::SpecialFile, "is a link or a special file");
        }
        if self.flags & FLAGS_REFUSED != 0 {
            return refuse(Rule::UnsupportedArchive, "is encrypted or patched data");
        }
        if !matches!(self.method, METHOD_STORED | METHOD_DEFLATE | METHOD_ZSTD) {
            let message = "is compressed in a way other than deflate or zstd";
            return refuse(Rule::UnsupportedArchive, message);
        }
        if self.is_folder() && (self.unpacked_bytes > 0 || self.packed_bytes > 0) {
            return refuse(Rule::LyingSize, "is a folder with data");
        }
        if self.method == METHOD_STORED && self.packed_bytes != self.unpacked_bytes {
            return refuse(Rule::LyingSize, "is stored, yet has two sizes");
        }
        if is_bomb(self.packed_bytes, self.unpacked_bytes, limits) {
            let message = format!(
                "unpacks to more than {} times its packed size",
                limits.ratio_max
            );
            return refuse(Rule::CompressionRatio, &message);
        }
        Ok(())
    }

    /// Finds the data behind the local header, which must agree with the central one.
    fn locate(&self, archive: &[u8], directory_at: usize) -> Result<Span, Problem> {
        let damaged = || {
            let message = "its local header is damaged or differs from the directory";
            Problem::error(Rule::LyingSize, shown(&self.path), message)
        };
        let before_directory = archive.get(..directory_at).ok_or_else(damaged)?;
        let bytes = before_directory.get(self.header_at..).ok_or_else(damaged)?;
        let span = self.agreeing_span(bytes).ok_or_else(damaged)?;
        match span.end <= directory_at {
            true => Ok(span),
            false => Err(damaged()),
        }
    }

    fn agreeing_span(&self, bytes: &[u8]) -> Option<Span> {
        let fields = Fields(bytes);
        let name_bytes = usize::from(fields.u16(26)?);
        let extra_bytes = usize::from(fields.u16(28)?);
        let name = bytes.get(LOCAL_BYTES..LOCAL_BYTES + name_bytes)?;
        let has_descriptor = self.flags & FLAG_DESCRIPTOR != 0;
        let same_kind = fields.u32(0)? == LOCAL_SIGNATURE
            && fields.u16(6)? == self.flags
            && fields.u16(8)? == self.method
            && String::from_utf8_lossy(name) == self.path;
        let same_sizes = has_descriptor
            || (fields.u32(14)? == self.crc
                && u64::from(fields.u32(18)?) == self.packed_bytes
                && u64::from(fields.u32(22)?) == self.unpacked_bytes);
        let data = self.header_at + LOCAL_BYTES + name_bytes + extra_bytes;
        let end = data.checked_add(usize::try_from(self.packed_bytes).ok()?)?;
        (same_kind && same_sizes).then_some(Span {
            start: self.header_at,
            data,
            end,
            has_descriptor,
        })
    }

    fn unpack(&self, archive: &[u8], directory_at: usize) -> Result<Vec<u8>, Problem> {
        let span = self.locate(archive, directory_at)?;
        let packed = &archive[span.data..span.end];
        let (path, size) = (&self.path, self.unpacked_bytes);
        let bytes = match self.method {
            METHOD_DEFLATE => read_sized(flate2::read::DeflateDecoder::new(packed), path, size),
            METHOD_ZSTD => match ruzstd::decoding::StreamingDecoder::new(packed) {
                Ok(decoder) => read_sized(decoder, path, size),
                Err(error) => {
                    let message = format!("cannot be decompressed: {error}");
                    Err(Problem::error(Rule::NotAnArchive, path, message))
                }
            },
            _ => read_sized(packed, path, size),
        }?;
        if crc32fast::hash(&bytes) != self.crc {
            let message = "its checksum is wrong: the file is damaged";
            return Err(Problem::error(Rule::LyingSize, path, message));
        }
        Ok(bytes)
    }
}

/// Entries must follow each other from the first byte to the directory; the only thing allowed
/// between them is the descriptor that a streaming zip tool puts after the data.
fn check_layout(spans: &mut [Span], directory_at: usize) -> Result<(), Report> {
    const DESCRIPTOR_BYTES: [usize; 4] = [12, 16, 20, 24];
    spans.sort();
    let starts = spans.iter().skip(1).map(|span| span.start);
    let ends = starts.chain([directory_at]);
    let adjacent = spans.iter().zip(ends).all(|(span, next)| {
        let gap = next.checked_sub(span.end);
        gap.is_some_and(|gap| match span.has_descriptor {
            true => DESCRIPTOR_BYTES.contains(&gap),
            false => gap == 0,
        })
    });
    if adjacent && spans.first().is_some_and(|first| first.start == 0) {
        return Ok(());
    }
    let message = "entries of the zip archive overlap, or bytes between them belong to none";
    Err(Problem::error(Rule::OverlappingEntries, "", message).into())
}

/// Little-endian numbers at offsets, or nothing past the end.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> Option<u16> {
        let bytes = self.0.get(at..at + 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..at + 4)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}
