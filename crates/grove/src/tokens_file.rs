//! The tokens of the host, in files of the data folder.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use grove_host::Token;
use grove_host::tokens::{MAX_TOKENS, TokenRecord, TokenStorage};

use crate::data_folder::{self, write_private};
use crate::secret_files;

/// `tokens.json`, which has a verifier of each named token, and `token`, which has the host's own.
#[derive(Debug)]
pub(crate) struct TokensFile {
    data_dir: PathBuf,
}

impl TokensFile {
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.data_dir.join("tokens.json")
    }

    fn read(&self) -> anyhow::Result<Vec<TokenRecord>> {
        let path = self.path();
        let Some(secret) = secret_files::read(&path)? else { return Ok(Vec::new()) };
        let mut tokens: Vec<TokenRecord> = serde_json::from_str(&secret.text)
            .with_context(|| format!("{} is damaged: remove it, and make the tokens again", path.display()))?;
        tokens.truncate(MAX_TOKENS);
        Ok(tokens)
    }
}

impl TokenStorage for TokensFile {
    fn load(&self) -> io::Result<Vec<TokenRecord>> {
        self.read().map_err(|error| io::Error::other(format!("{error:#}")))
    }

    fn store(&self, tokens: &[TokenRecord]) -> io::Result<()> {
        let text = serde_json::to_string_pretty(tokens)?;
        write_private(&self.path(), &text).map_err(|error| io::Error::other(format!("{error:#}")))
    }

    fn store_host_token(&self, token: &Token) -> io::Result<()> {
        data_folder::replace_token(&self.data_dir, token).map_err(|error| io::Error::other(format!("{error:#}")))
    }
}
