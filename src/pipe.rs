//! Input that may keep us waiting: standard input, a pipe, a terminal.
//!
//! A thread that waits in a read cannot be told to stop. So another thread does the waiting, and what it reads comes
//! over a channel, which can be watched together with the wish to stop. The thread ends at its next read after that,
//! or with the process.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

const CHUNK: usize = 1 << 16;
const TICK: Duration = Duration::from_millis(50);

pub(crate) struct PipeReader {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
    stop: Arc<AtomicBool>,
}

impl PipeReader {
    /// Opening may wait too: a named pipe opens when somebody writes to it.
    pub(crate) fn new<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static, stop: Arc<AtomicBool>) -> Self {
        let (sender, chunks) = sync_channel(4);
        thread::spawn(move || {
            let read = || -> io::Result<()> {
                let mut input = open()?;
                loop {
                    let mut chunk = Vec::new();
                    let end = input.by_ref().take(CHUNK as u64).read_to_end(&mut chunk)? < CHUNK;
                    // Nobody listens any more when the reading was stopped.
                    if sender.send(Ok(chunk)).is_err() || end {
                        return Ok(());
                    }
                }
            };
            if let Err(error) = read() {
                drop(sender.send(Err(error)));
            }
        });
        Self { chunks, chunk: io::Cursor::default(), stop }
    }
}

impl Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.chunk.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            match self.chunks.recv_timeout(TICK) {
                Ok(chunk) => self.chunk = io::Cursor::new(chunk?),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) if self.stop.load(Relaxed) => return Err(io::Error::other("stopped")),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
