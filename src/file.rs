//! Writing a file so that nobody ever sees half of it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::error::{Error, Result};

/// Writes beside the target, then renames: a failed or killed save leaves the old file whole.
///
/// A pipe or a device (`/dev/stdout`) cannot be replaced, so it is written to directly. Of a link, what it leads to is
/// replaced.
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let special = fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir());
    if special {
        return write_to(path, path, write);
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let temporary = temporary_beside(&target)?;
    write_to(&temporary, path, write)
        .and_then(|()| fs::rename(&temporary, &target).map_err(Error::io(path)))
        .inspect_err(|_| drop(fs::remove_file(&temporary)))
}

fn temporary_beside(path: &Path) -> Result<PathBuf> {
    let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
        return Err(Error::io(path)(io::Error::from(io::ErrorKind::IsADirectory)));
    };
    // Two threads that save to one path must not share a temporary file.
    static SAVES: AtomicU64 = AtomicU64::new(0);
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.{}.tmp", std::process::id(), SAVES.fetch_add(1, Relaxed)));
    Ok(path.with_file_name(temporary))
}

/// Writes to `file`; errors name `path`, the one that the user knows.
fn write_to(file: &Path, path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let file = File::create(file).map_err(Error::io(path))?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    write(&mut writer)?;
    let file = writer.into_inner().map_err(|error| Error::io(path)(error.into_error()))?;
    match file.sync_all() {
        // Pipes and devices have nothing to synchronise.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(Error::io(path)(error)),
        _ => Ok(()),
    }
}
