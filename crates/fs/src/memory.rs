//! Files in memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;

use crate::lines::WholeFile;
use crate::path::{file_parts, parts};
use crate::{Backend, Conventions, DirEntry, FileKind, FileLines, FsError, Removal, Result, SessionFs, Stat};

/// Files in memory. A clone is another handle on the same files.
#[derive(Clone, Debug, Default)]
pub struct MemoryFs {
    shared: Arc<MemoryStore>,
}

#[derive(Debug)]
struct MemoryStore {
    nodes: Mutex<Nodes>,
    /// Distinguishes this store from the others of this process.
    number: u64,
    /// Set if these are the files of one session: its working directory.
    session: Option<InitialCwd>,
    temp: OnceLock<MemoryFs>,
}

type InitialCwd = Option<String>;

impl Default for MemoryStore {
    fn default() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { nodes: Mutex::default(), number, session: None, temp: OnceLock::new() }
    }
}

/// Everything except for the root, by its full path.
type Nodes = BTreeMap<String, Node>;

#[derive(Debug)]
struct Node {
    content: NodeContent,
    modified: SystemTime,
    created: SystemTime,
}

#[derive(Debug)]
enum NodeContent {
    File(Vec<u8>),
    Folder,
}

impl Node {
    fn new(content: NodeContent) -> Self {
        let now = SystemTime::now();
        Self { content, modified: now, created: now }
    }

    fn kind(&self) -> FileKind {
        match self.content {
            NodeContent::File(_) => FileKind::File,
            NodeContent::Folder => FileKind::Folder,
        }
    }
}

impl MemoryFs {
    /// The files of one session. Its default working directory is `initial_cwd`.
    pub fn of_session(initial_cwd: Option<String>) -> Self {
        Self { shared: Arc::new(MemoryStore { session: Some(initial_cwd), ..MemoryStore::default() }) }
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        // No step under this lock can panic half way.
        self.shared.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SessionFs for MemoryFs {
    fn backend(&self) -> Backend {
        Backend::Memory
    }

    fn conventions(&self) -> Conventions {
        Conventions::Posix
    }

    fn location(&self, path: &str) -> Result<String> {
        parts(path)?;
        Ok(format!("/{path}"))
    }

    fn lock_key(&self, path: &str) -> Result<String> {
        // All stores in memory have the same root, and are not the same.
        Ok(format!("memory-{}:{}", self.shared.number, self.location(path)?))
    }

    fn session_state_path(&self) -> Option<String> {
        self.shared.session.is_some().then(|| "/".to_owned())
    }

    fn initial_cwd(&self) -> Option<String> {
        self.shared.session.clone().flatten()
    }

    fn tmpdir(&self) -> Result<Arc<dyn SessionFs>> {
        Ok(Arc::new(self.shared.temp.get_or_init(MemoryFs::default).clone()))
    }

    fn without_links(&self) -> Arc<dyn SessionFs> {
        // There are no links.
        Arc::new(self.clone())
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        self.read_range(path, 0, usize::MAX).await
    }

    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        file_parts(path)?;
        let nodes = self.nodes();
        let bytes = file(&nodes, path)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(length).min(bytes.len());
        Ok(bytes[start..end].to_vec())
    }

    async fn read_lines(&self, path: &str, longest: usize) -> Result<FileLines> {
        Ok(FileLines::new(path, WholeFile::new(self.read_file(path).await?), longest))
    }

    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let parts = file_parts(path)?;
        let mut nodes = self.nodes();
        make_folders(&mut nodes, path, &parts[..parts.len() - 1])?;
        if nodes.get(path).is_some_and(|node| node.kind() == FileKind::Folder) {
            return Err(FsError::IsADirectory { path: path.to_owned() });
        }
        nodes.insert(path.to_owned(), Node::new(NodeContent::File(bytes.to_vec())));
        Ok(())
    }

    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let parts = file_parts(path)?;
        let mut nodes = self.nodes();
        make_folders(&mut nodes, path, &parts[..parts.len() - 1])?;
        let node = nodes.entry(path.to_owned()).or_insert_with(|| Node::new(NodeContent::File(Vec::new())));
        match &mut node.content {
            NodeContent::File(content) => content.extend_from_slice(bytes),
            NodeContent::Folder => return Err(FsError::IsADirectory { path: path.to_owned() }),
        }
        node.modified = SystemTime::now();
        Ok(())
    }

    async fn sync(&self, path: &str) -> Result<()> {
        file_parts(path)?;
        file(&self.nodes(), path).map(|_| ())
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<()> {
        file_parts(path)?;
        let mut nodes = self.nodes();
        file(&nodes, path)?;
        if let Some(Node { content: NodeContent::File(bytes), modified, .. }) = nodes.get_mut(path) {
            bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            *modified = SystemTime::now();
        }
        Ok(())
    }

    async fn stat(&self, path: &str) -> Result<Stat> {
        if parts(path)?.is_empty() {
            let unknown = SystemTime::UNIX_EPOCH;
            return Ok(Stat { kind: FileKind::Folder, size: 0, modified: unknown, created: unknown });
        }
        let nodes = self.nodes();
        let node = node(&nodes, path)?;
        let size = match &node.content {
            NodeContent::File(bytes) => bytes.len() as u64,
            NodeContent::Folder => 0,
        };
        Ok(Stat { kind: node.kind(), size, modified: node.modified, created: node.created })
    }

    async fn mkdir(&self, path: &str) -> Result<()> {
        let parts = parts(path)?;
        make_folders(&mut self.nodes(), path, &parts)
    }

    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>> {
        let is_root = parts(path)?.is_empty();
        let nodes = self.nodes();
        if !is_root && node(&nodes, path)?.kind() != FileKind::Folder {
            return Err(FsError::NotADirectory { path: path.to_owned() });
        }
        let prefix = if is_root { String::new() } else { format!("{path}/") };
        let inside = nodes.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        let names = inside.map_while(|(name, node)| Some((name.strip_prefix(&prefix)?, node)));
        let direct = names.filter(|(name, _)| !name.contains('/'));
        Ok(direct.map(|(name, node)| DirEntry { name: name.to_owned(), kind: node.kind() }).collect())
    }

    async fn rm(&self, path: &str, what: Removal) -> Result<()> {
        file_parts(path)?;
        let mut nodes = self.nodes();
        node(&nodes, path)?;
        let inside: Vec<String> = inside(&nodes, path);
        if what == Removal::One && !inside.is_empty() {
            return Err(FsError::NotEmpty { path: path.to_owned() });
        }
        nodes.remove(path);
        inside.iter().for_each(|name| drop(nodes.remove(name)));
        Ok(())
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        file_parts(from)?;
        let target = file_parts(to)?;
        let mut nodes = self.nodes();
        let kind = node(&nodes, from)?.kind();
        if let Some((_, folder)) = target.split_last()
            && !folder.is_empty()
            && node(&nodes, &folder.join("/"))?.kind() != FileKind::Folder
        {
            return Err(FsError::NotADirectory { path: from.to_owned() });
        }
        if from == to {
            return Ok(());
        }
        let error = |reason: &str| FsError::Other { path: from.to_owned(), reason: reason.to_owned() };
        if to.strip_prefix(from).is_some_and(|rest| rest.starts_with('/')) {
            return Err(error("a folder cannot be moved into itself"));
        }
        if from.strip_prefix(to).is_some_and(|rest| rest.starts_with('/')) {
            // As the operating system reports it: the target contains the source.
            return Err(FsError::NotEmpty { path: from.to_owned() });
        }
        match (kind, nodes.get(to).map(Node::kind)) {
            (_, None) | (FileKind::File, Some(FileKind::File)) => {}
            (FileKind::File, Some(_)) => return Err(FsError::IsADirectory { path: from.to_owned() }),
            (_, Some(FileKind::Folder)) if inside(&nodes, to).is_empty() => {}
            (_, Some(FileKind::Folder)) => return Err(FsError::NotEmpty { path: from.to_owned() }),
            (_, Some(_)) => return Err(FsError::NotADirectory { path: from.to_owned() }),
        }
        let mut moved = vec![from.to_owned()];
        moved.extend(inside(&nodes, from));
        for name in moved {
            if let Some(node) = nodes.remove(&name) {
                nodes.insert(format!("{to}{}", &name[from.len()..]), node);
            }
        }
        Ok(())
    }
}

/// The node at a path. A file in the middle of the path is the error that is reported.
fn node<'a>(nodes: &'a Nodes, path: &str) -> Result<&'a Node> {
    if let Some(node) = nodes.get(path) {
        return Ok(node);
    }
    let above = path.match_indices('/').map(|(at, _)| &path[..at]);
    let mut in_the_way = above.filter_map(|folder| nodes.get(folder)).filter(|node| node.kind() == FileKind::File);
    Err(match in_the_way.next() {
        Some(_) => FsError::NotADirectory { path: path.to_owned() },
        None => FsError::NotFound { path: path.to_owned() },
    })
}

fn file<'a>(nodes: &'a Nodes, path: &str) -> Result<&'a [u8]> {
    match &node(nodes, path)?.content {
        NodeContent::File(bytes) => Ok(bytes),
        NodeContent::Folder => Err(FsError::IsADirectory { path: path.to_owned() }),
    }
}

/// The full paths of everything in a folder.
fn inside(nodes: &Nodes, path: &str) -> Vec<String> {
    let prefix = format!("{path}/");
    let from = nodes.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
    from.map(|(name, _)| name).take_while(|name| name.starts_with(&prefix)).cloned().collect()
}

/// Creates the folders that lead to `path`, whose parts are given.
fn make_folders(nodes: &mut Nodes, path: &str, parts: &[&str]) -> Result<()> {
    let mut name = String::new();
    for part in parts {
        if !name.is_empty() {
            name.push('/');
        }
        name.push_str(part);
        match nodes.get(&name).map(Node::kind) {
            None => drop(nodes.insert(name.clone(), Node::new(NodeContent::Folder))),
            Some(FileKind::Folder) => {}
            // As the operating system reports it: at the end of the path, or on the way.
            Some(_) if name == path => return Err(FsError::AlreadyExists { path: path.to_owned() }),
            Some(_) => return Err(FsError::NotADirectory { path: path.to_owned() }),
        }
    }
    Ok(())
}
