//! Logging in to an agent: the methods that it offers, and the question to a person which one to use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use grove_core::*;
use serde::Deserialize;

/// The most methods of an agent that are read.
pub const LOGIN_METHODS: usize = 32;
/// The longest text of a method, in characters. A longer one is cut.
const METHOD_CHARS: usize = 300;
/// The time that a person has to choose a method, before the turn fails.
pub const LOGIN_CHOICE_TIME: Duration = Duration::from_secs(10 * 60);
/// The time that a login may take in which the agent itself waits for a person, in a browser for example.
pub const LOGIN_TIME: Duration = Duration::from_secs(10 * 60);

/// A way to log in, as an agent offers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginMethod {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    pub kind: LoginKind,
}

/// The party that carries out a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginKind {
    /// The agent, when it is asked to (`authenticate`).
    Agent,
    /// A program in a person's terminal.
    Terminal(TerminalLogin),
}

/// A program that logs a person in, in a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalLogin {
    /// `None`: the agent's own program with its arguments, and those below after them.
    pub program: Option<PathBuf>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// The facts that an agent tells when it is initialised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentProbe {
    pub name: Option<String>,
    pub version: Option<String>,
    pub login_methods: Vec<LoginMethod>,
}

/// The member `terminal-auth` of a method's `_meta`, which agents used before the protocol had such methods.
#[derive(Deserialize)]
struct TerminalAuthMeta {
    command: PathBuf,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

impl LoginMethod {
    fn read(method: &acp::AuthMethod) -> Self {
        let meta = match method {
            acp::AuthMethod::Terminal(terminal) => terminal.meta.as_ref(),
            acp::AuthMethod::Agent(agent) => agent.meta.as_ref(),
            _ => None,
        };
        let older = meta.and_then(|meta| meta.get("terminal-auth"));
        let older = older.and_then(|meta| serde_json::from_value::<TerminalAuthMeta>(meta.clone()).ok());
        let kind = match (method, older) {
            (acp::AuthMethod::Terminal(terminal), _) => LoginKind::Terminal(TerminalLogin {
                program: None,
                args: terminal.args.clone(),
                env: terminal.env.clone().into_iter().collect(),
            }),
            (_, Some(TerminalAuthMeta { command, args, env })) => {
                LoginKind::Terminal(TerminalLogin { program: Some(command), args, env })
            }
            (_, None) => LoginKind::Agent,
        };
        Self {
            id: method.id().0.to_string(),
            name: one_line(method.name()),
            description: method.description().map(one_line),
            kind,
        }
    }

    /// The methods of an agent.
    pub(crate) fn read_all(methods: &[acp::AuthMethod]) -> Vec<Self> {
        methods.iter().take(LOGIN_METHODS).map(Self::read).collect()
    }

    /// Returns whether the agent logs in by itself.
    pub fn is_of_agent(&self) -> bool {
        self.kind == LoginKind::Agent
    }
}

/// A text of an agent on one line, without control characters.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(METHOD_CHARS).collect()
}

/// The choice of a person who was asked to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoginChoice {
    /// Use this method of the agent.
    Method(String),
    /// The login was done elsewhere: try again.
    Retry,
    /// Do not log in.
    Decline,
}

/// The id of the question in its request.
const QUESTION: &str = "login";
/// The option of a login that happens elsewhere.
const RETRY: &str = "grove:retry";

/// The question how to log in to an agent. `agent` is its id for commands, `problem` its own words.
pub(crate) fn question(
    id: RequestId,
    agent: &str,
    display_name: &str,
    problem: &str,
    methods: &[LoginMethod],
) -> InputRequest {
    let by_agent = methods.iter().filter(|method| method.is_of_agent());
    let mut options: Vec<Choice> = by_agent
        .map(|method| Choice {
            id: method.id.clone(),
            label: method.name.clone(),
            description: method.description.clone(),
            recommended: false,
        })
        .collect();
    options.push(Choice {
        id: RETRY.to_owned(),
        label: "I have logged in".to_owned(),
        description: Some(format!("Try again after `grove agents login {agent}` in a terminal of the host's machine")),
        recommended: false,
    });
    InputRequest {
        id,
        message: Some(format!("{display_name} requires a login: {}", one_line(problem))),
        url: None,
        questions: vec![Question {
            id: QuestionId::from(QUESTION),
            title: Some("Login".to_owned()),
            message: format!("How do you want to log in to {display_name}?"),
            required: true,
            kind: QuestionKind::One { options, freeform: false },
        }],
        answers: Answers::new(),
        outcome: None,
        answered_by: None,
    }
}

/// The choice in an answer to [`question`].
pub(crate) fn choice(answered: &InputResponse) -> LoginChoice {
    if answered.outcome != InputOutcome::Accepted {
        return LoginChoice::Decline;
    }
    match answered.answers.get(&QuestionId::from(QUESTION)) {
        Some(Answer::Submitted(AnswerValue::One { id, .. })) if id == RETRY => LoginChoice::Retry,
        Some(Answer::Submitted(AnswerValue::One { id, .. })) => LoginChoice::Method(id.clone()),
        _ => LoginChoice::Decline,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(method: serde_json::Value) -> LoginMethod {
        LoginMethod::read(&serde_json::from_value(method).unwrap())
    }

    #[test]
    fn a_method_is_of_the_agent_or_of_a_terminal_in_either_notation() {
        assert!(read(json!({"id": "oauth", "name": "Log in"})).is_of_agent());
        let terminal =
            read(json!({"type": "terminal", "id": "t", "name": "T", "args": ["--login"], "env": {"A": "b"}}));
        let expected =
            TerminalLogin { program: None, args: vec!["--login".into()], env: [("A".into(), "b".into())].into() };
        assert_eq!(terminal.kind, LoginKind::Terminal(expected));
        let older = read(json!({
            "id": "o", "name": "O\u{1b}[31m", "_meta": {"terminal-auth": {"command": "/bin/agent", "args": ["login"], "label": "x"}},
        }));
        let expected =
            TerminalLogin { program: Some("/bin/agent".into()), args: vec!["login".into()], env: BTreeMap::new() };
        assert_eq!((older.kind, older.name.as_str()), (LoginKind::Terminal(expected), "O [31m"));
    }

    #[test]
    fn a_person_is_offered_the_agents_methods_and_a_second_try() {
        let methods = [
            read(json!({"id": "oauth", "name": "Browser"})),
            read(json!({"type": "terminal", "id": "t", "name": "Terminal"})),
        ];
        let asked = question("r".into(), "mine", "Mine", "please\nlog in", &methods);
        let QuestionKind::One { options, .. } = &asked.questions[0].kind else { panic!("{asked:?}") };
        let ids: Vec<&str> = options.iter().map(|option| option.id.as_str()).collect();
        assert_eq!(ids, ["oauth", RETRY], "a terminal's method cannot be used by the agent");
        assert!(options[1].description.as_deref().unwrap().contains("grove agents login mine"));
        assert_eq!(asked.message.as_deref(), Some("Mine requires a login: please log in"));
        let answer = |id: &str| InputResponse {
            outcome: InputOutcome::Accepted,
            answers: [(
                QuestionId::from(QUESTION),
                Answer::Submitted(AnswerValue::One { id: id.to_owned(), freeform: Vec::new() }),
            )]
            .into(),
        };
        assert_eq!(choice(&answer("oauth")), LoginChoice::Method("oauth".to_owned()));
        assert_eq!(choice(&answer(RETRY)), LoginChoice::Retry);
        let declined = InputResponse { outcome: InputOutcome::Declined, ..answer("oauth") };
        assert_eq!(choice(&declined), LoginChoice::Decline);
    }
}
