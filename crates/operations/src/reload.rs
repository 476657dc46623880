//! Notices when a configuration file changes.
//!
//! Kubernetes swaps a link when a ConfigMap changes, editors write to another file and rename it, and some file systems report
//! nothing; so the file is simply read once a second and its contents are compared.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

/// How often the file is looked at.
pub const POLL_PERIOD: Duration = Duration::from_secs(1);

/// A larger file is no configuration: a ConfigMap holds a MiB at most.
pub const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Where files are read: the machine, or what a test says.
#[derive(Clone)]
pub struct Files(Arc<ReadFile>);

/// Says what the file at a path holds.
type ReadFile = dyn Fn(&Path) -> io::Result<Vec<u8>> + Send + Sync;

impl Files {
    /// The files of this machine.
    pub fn system() -> Self {
        Files(Arc::new(read))
    }

    /// Files that hold what `read` says.
    pub fn from_fn(read: impl Fn(&Path) -> io::Result<Vec<u8>> + Send + Sync + 'static) -> Self {
        Files(Arc::new(read))
    }

    /// What a file holds.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        (self.0)(path)
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Files")
    }
}

/// Watches one file.
#[derive(Debug)]
pub struct FileWatch {
    files: Files,
    path: PathBuf,
    contents: Vec<u8>,
    /// What was wrong with the file last, so that it is said once.
    trouble: Option<String>,
}

impl FileWatch {
    /// Watches a file whose contents are known, so that a change between reading it and watching it is not missed.
    pub fn new(path: impl Into<PathBuf>, contents: impl Into<Vec<u8>>) -> Self {
        FileWatch { files: Files::system(), path: path.into(), contents: contents.into(), trouble: None }
    }

    /// Looks for the file elsewhere.
    #[must_use]
    pub fn with_files(mut self, files: Files) -> Self {
        self.files = files;
        self
    }

    /// Reads a file, and watches it.
    pub fn read(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let contents = read(&path)?;
        Ok(FileWatch::new(path, contents))
    }

    /// What the file held last.
    pub fn contents(&self) -> &[u8] {
        &self.contents
    }

    /// Waits until the file holds something else, and returns that. A file that cannot be read counts as unchanged: it may be in
    /// the middle of being replaced. Giving up the wait loses nothing.
    pub async fn changed(&mut self) -> &[u8] {
        loop {
            sleep(POLL_PERIOD).await;
            match self.files.read(&self.path) {
                Ok(contents) => {
                    self.trouble = None;
                    if contents != self.contents {
                        self.contents = contents;
                        return &self.contents;
                    }
                }
                Err(error) => {
                    let error = error.to_string();
                    if self.trouble.as_ref() != Some(&error) {
                        tracing::warn!(file = %self.path.display(), err = error, "Configuration file cannot be read");
                        self.trouble = Some(error);
                    }
                }
            }
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut contents)?;
    if contents.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("the file is larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tokio::time::{Instant, timeout};

    use super::{FileWatch, POLL_PERIOD};

    #[tokio::test(start_paused = true)]
    async fn a_change_is_noticed_within_a_second() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("config.yaml");
        fs::write(&path, "a").expect("written");
        let mut watch = FileWatch::read(&path).expect("read");
        assert!(timeout(10 * POLL_PERIOD, watch.changed()).await.is_err(), "nothing has changed");
        fs::write(&path, "a").expect("written");
        assert!(timeout(10 * POLL_PERIOD, watch.changed()).await.is_err(), "another time, the same contents");
        fs::write(&path, "b").expect("written");
        let before = Instant::now();
        assert_eq!(watch.changed().await, b"b");
        assert!(before.elapsed() <= POLL_PERIOD + POLL_PERIOD / 10);
        assert_eq!(watch.contents(), b"b");
    }

    #[tokio::test(start_paused = true)]
    async fn a_mounted_config_map_is_followed() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let at = |name: &str| folder.path().join(name);
        for (version, text) in [("..1", "old"), ("..2", "new")] {
            fs::create_dir(at(version)).expect("made");
            fs::write(at(version).join("config.yaml"), text).expect("written");
        }
        symlink("..1", at("..data")).expect("linked");
        symlink("..data/config.yaml", at("config.yaml")).expect("linked");
        let mut watch = FileWatch::new(at("config.yaml"), "old");
        symlink("..2", at("..data_tmp")).expect("linked");
        fs::rename(at("..data_tmp"), at("..data")).expect("renamed");
        assert_eq!(watch.changed().await, b"new");
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_away_for_a_moment_has_not_changed() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("config.yaml");
        let mut watch = FileWatch::new(&path, "a");
        assert!(timeout(5 * POLL_PERIOD, watch.changed()).await.is_err());
        fs::write(&path, "a").expect("written");
        assert!(timeout(5 * POLL_PERIOD, watch.changed()).await.is_err());
        fs::write(&path, "b").expect("written");
        assert_eq!(watch.changed().await, b"b");
    }
}
