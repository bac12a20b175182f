//! Requests about a session's workspace (plan, files, checkpoints), in every dialect.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_core::SessionUri;
use grove_fs::workspace::{self as fs, Field, Manifest, ManifestError};
use grove_host::Host;
use grove_host::session::{ChatAddress, SessionRequestError, WorkspaceAnswer, WorkspaceRequest, WorkspaceRequestError};
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::x_grove::workspace::*;
use serde_json::value::RawValue;
use std::time::UNIX_EPOCH;
use tokio::sync::oneshot;

use super::answer::{encode, read_params, refused};

/// The largest plan or summary that is sent. A message can hold it even if every character is escaped.
pub const MAX_TEXT_BYTES: usize = 4 << 20;

/// A request to a session's workspace that is not answered yet.
pub(crate) struct PendingWorkspaceCall {
    id: Id,
    session: SessionUri,
    request: AnswerShape,
    reply: oneshot::Receiver<Result<WorkspaceAnswer, WorkspaceRequestError>>,
}

/// The parts of a request that its answer repeats, or that decide its shape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerShape {
    Checkpoint(u32),
    RemoveFile,
    Other,
}

/// Parses a request.
pub(super) fn read(method: WorkspaceMethod, params: Option<&RawValue>) -> Result<WorkspaceRequest, ErrorObject> {
    Ok(match method {
        WorkspaceMethod::Manifest => WorkspaceRequest::Manifest,
        WorkspaceMethod::Plan => WorkspaceRequest::Plan,
        WorkspaceMethod::SetPlan => {
            let SetPlanParams { text } = read_params(params)?;
            if text.as_ref().is_some_and(|text| text.len() > MAX_TEXT_BYTES) {
                return Err(ErrorObject::invalid_params(format!("a plan may have at most {MAX_TEXT_BYTES} bytes")));
            }
            WorkspaceRequest::SetPlan(text)
        }
        WorkspaceMethod::Files => {
            WorkspaceRequest::Files(files_folder(params_or_default::<FilesParams>(params)?.folder))
        }
        WorkspaceMethod::ReadFile => {
            let ReadFileParams { name, folder, offset, length } = read_params(params)?;
            let length = length.unwrap_or(MAX_FILE_BYTES).clamp(1, MAX_FILE_BYTES);
            WorkspaceRequest::ReadFile { folder: files_folder(folder), name, offset, length }
        }
        WorkspaceMethod::WriteFile => {
            let WriteFileParams { name, folder, data, encoding } = read_params(params)?;
            let bytes = match encoding {
                Encoding::Utf8 => data.into_bytes(),
                Encoding::Base64 => STANDARD
                    .decode(data)
                    .map_err(|error| ErrorObject::invalid_params(format!("`data` is not base64: {error}")))?,
            };
            if bytes.len() > MAX_FILE_BYTES {
                let most = format!("a file that is written at once may have at most {MAX_FILE_BYTES} bytes");
                return Err(ErrorObject::invalid_params(most));
            }
            WorkspaceRequest::WriteFile { folder: files_folder(folder), name, bytes }
        }
        WorkspaceMethod::RemoveFile => {
            let RemoveFileParams { name, folder } = read_params(params)?;
            WorkspaceRequest::RemoveFile { folder: files_folder(folder), name }
        }
        WorkspaceMethod::Checkpoints => WorkspaceRequest::Checkpoints,
        WorkspaceMethod::Checkpoint => WorkspaceRequest::Checkpoint(read_params::<CheckpointParams>(params)?.number),
        WorkspaceMethod::Todos => WorkspaceRequest::Todos,
    })
}

/// Sends the request to the session.
pub(super) async fn begin(
    host: &Host,
    id: Id,
    request: WorkspaceRequest,
    (session, _): ChatAddress,
) -> Result<PendingWorkspaceCall, ErrorObject> {
    let kind = match &request {
        WorkspaceRequest::Checkpoint(number) => AnswerShape::Checkpoint(*number),
        WorkspaceRequest::RemoveFile { .. } => AnswerShape::RemoveFile,
        _ => AnswerShape::Other,
    };
    let reply = host.ask_workspace(&session, request).await.map_err(|error| refused(&error))?;
    Ok(PendingWorkspaceCall { id, session, request: kind, reply })
}

impl PendingWorkspaceCall {
    /// Waits for the answer.
    pub(super) async fn answer(self) -> String {
        let Self { id, session, request, reply } = self;
        let answer = match reply.await {
            Ok(Ok(answer)) => encode_answer(&id, request, answer),
            Ok(Err(error)) => Err(refused(&error)),
            Err(_) => Err(refused(&SessionRequestError::NoSession(session))),
        };
        answer.unwrap_or_else(|error| jsonrpc::error(Some(&id), &error))
    }
}

fn encode_answer(id: &Id, request: AnswerShape, answer: WorkspaceAnswer) -> Result<String, ErrorObject> {
    Ok(match answer {
        WorkspaceAnswer::Manifest { manifest, path } => {
            let result = manifest_result(&manifest, path).map_err(|error| ErrorObject::internal(error.to_string()))?;
            encode(id, &result)
        }
        WorkspaceAnswer::Plan(text) => encode(id, &PlanResult { text: text.map(within).transpose()? }),
        WorkspaceAnswer::Files(listing) => {
            let files = listing.files.into_iter().map(|file| FileInfo {
                name: file.name,
                size: file.size,
                modified: millis(file.modified),
            });
            encode(id, &FilesResult { files: files.collect(), more: listing.more })
        }
        WorkspaceAnswer::File { bytes, more } => {
            let (data, encoding) = match String::from_utf8(bytes) {
                Ok(text) => (text, Encoding::Utf8),
                Err(error) => (STANDARD.encode(error.as_bytes()), Encoding::Base64),
            };
            encode(id, &ReadFileResult { data, encoding, more })
        }
        WorkspaceAnswer::Written { size } => encode(id, &WriteFileResult { size }),
        WorkspaceAnswer::Changed(removed) if request == AnswerShape::RemoveFile => {
            encode(id, &RemoveFileResult { removed })
        }
        WorkspaceAnswer::Changed(changed) => encode(id, &SetPlanResult { changed }),
        WorkspaceAnswer::Checkpoints(checkpoints) => {
            let info = |fs::Checkpoint { number, title, file }| CheckpointInfo { number, title, file };
            encode(id, &CheckpointsResult { checkpoints: checkpoints.into_iter().map(info).collect() })
        }
        WorkspaceAnswer::Checkpoint(text) => {
            let number = if let AnswerShape::Checkpoint(number) = request { number } else { 0 };
            encode(id, &CheckpointResult { number, text: within(text)? })
        }
        WorkspaceAnswer::Todos(todos) => {
            let todo = |todo: fs::Todo| Todo {
                id: todo.id,
                title: todo.title,
                description: todo.description,
                status: todo.status.name().to_owned(),
                depends_on: todo.depends_on,
            };
            encode(id, &TodosResult { todos: todos.into_iter().map(todo).collect() })
        }
    })
}

fn manifest_result(manifest: &Manifest, path: String) -> Result<ManifestResult, ManifestError> {
    let text = |field| manifest.text(field).map(|text| text.map(str::to_owned));
    Ok(ManifestResult {
        id: text(Field::Id)?.unwrap_or_default(),
        path,
        cwd: text(Field::Cwd)?,
        git_root: text(Field::GitRoot)?,
        repository: text(Field::Repository)?,
        branch: text(Field::Branch)?,
        name: text(Field::Name)?,
        user_named: manifest.flag(Field::UserNamed)?.unwrap_or(false),
        summary_count: manifest.number(Field::SummaryCount)?.unwrap_or(0),
        fork_count: manifest.number(Field::ForkCount)?.unwrap_or(0),
        created_at: text(Field::CreatedAt)?,
        updated_at: text(Field::UpdatedAt)?,
    })
}

/// Params that may be left out entirely.
fn params_or_default<P: Default + serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Result<P, ErrorObject> {
    if params.is_some() { read_params(params) } else { Ok(P::default()) }
}

fn files_folder(folder: FilesFolder) -> fs::FilesFolder {
    match folder {
        FilesFolder::Files => fs::FilesFolder::Files,
        FilesFolder::Research => fs::FilesFolder::Research,
    }
}

fn within(text: String) -> Result<String, ErrorObject> {
    if text.len() <= MAX_TEXT_BYTES {
        return Ok(text);
    }
    Err(ErrorObject::invalid_params(format!("it has more than {MAX_TEXT_BYTES} bytes: open the file itself")))
}

fn millis(time: std::time::SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use grove_fs::workspace::WorkspaceError;
    use grove_wire::jsonrpc::code;

    use super::*;

    #[test]
    fn a_session_without_a_folder_says_so() {
        let error = refused(&WorkspaceRequestError::from(WorkspaceError::NoWorkspace));
        assert_eq!(error.code, code::INVALID_PARAMS);
        assert!(error.message.contains("stored nowhere"), "{}", error.message);
    }
}
