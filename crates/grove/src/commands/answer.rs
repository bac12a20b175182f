//! `grove approve`, `grove deny` and `grove answer`

use anyhow::anyhow;
use grove_wire::ahp::{ChatInputRequest, ConfirmationOptionKind};
use grove_wire::x_grove::policy::RuleTarget;
use serde_json::json;

use super::run::start;
use super::{Failure, command_runtime, print_line};
use crate::chat_client::any::AnyChatClient;
use crate::chat_client::{ChatClient, ChatCommand, PendingRequest, PermissionDecision, ToolPermission};
use crate::cli::{AlwaysTarget, AnswerArgs, ApproveArgs, Common, DenyArgs, PermissionArgs, Protocol};
use crate::connect::{HostConnector, id_of};
use crate::follow::OutputFormat;
use crate::question_dialog::{self, names, with_option};
use crate::show::style::sanitize;

pub(crate) fn approve(common: &Common, args: &ApproveArgs) -> Result<(), Failure> {
    if let Some(target) = args.always {
        return always(common, &args.permission, target, args.rule);
    }
    decide(common, &args.permission, |permission| match &args.option {
        None => Ok(PermissionDecision::new(true)),
        Some(wanted) => chosen(permission, wanted, true),
    })
}

pub(crate) fn deny(common: &Common, args: &DenyArgs) -> Result<(), Failure> {
    decide(common, &args.permission, |permission| {
        let verdict = match &args.option {
            None => PermissionDecision::new(false),
            Some(wanted) => chosen(permission, wanted, false)?,
        };
        Ok(PermissionDecision { reason: args.reason.clone(), ..verdict })
    })
}

/// The option of this id, if its effect matches the command.
fn chosen(permission: &ToolPermission, wanted: &str, approves: bool) -> Result<PermissionDecision, Failure> {
    let option = permission.options.iter().find(|option| option.id == wanted);
    let option = option.ok_or_else(|| match permission.options.as_slice() {
        [] => Failure::NotFound(format!("{} has no options: leave out --option", permission.title)),
        options => Failure::NotFound(format!("there is no option {wanted:?}: there are {}", names(options))),
    })?;
    match (&option.kind, approves) {
        (ConfirmationOptionKind::Deny, true) => Err(anyhow!("{wanted:?} denies: use `grove deny`").into()),
        (ConfirmationOptionKind::Approve, false) => Err(anyhow!("{wanted:?} approves: use `grove approve`").into()),
        (ConfirmationOptionKind::Approve | ConfirmationOptionKind::Deny | ConfirmationOptionKind::Unknown(_), _) => {
            Ok(with_option(option))
        }
    }
}

/// Answers a permission request.
fn decide(
    common: &Common,
    args: &PermissionArgs,
    verdict: impl FnOnce(&ToolPermission) -> Result<PermissionDecision, Failure>,
) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let (mut chat_client, permission) = the_permission(&connector, args).await?;
        let verdict = verdict(&permission)?;
        let waiting = PendingRequest::ToolPermission(permission.clone());
        let (request, approved) = (permission.request.clone(), verdict.approved);
        start(&mut chat_client, ChatCommand::Permit { permission: Box::new(permission), verdict }).await?;
        if args.json {
            return Ok(print_line(json!({"session": chat_client.uri(), "request": request, "approved": approved}))?);
        }
        let decided = if approved { "approved" } else { "denied" };
        Ok(print_line(format!("{decided}: {}", sanitize(&waiting.summary())))?)
    })
}

/// The permission request that a command names, or the only one.
async fn the_permission(
    connector: &HostConnector,
    args: &PermissionArgs,
) -> Result<(AnyChatClient, ToolPermission), Failure> {
    let chat_client = match &args.session {
        Some(session) => {
            AnyChatClient::join(connector, args.connect.protocol, session, None, OutputFormat::Shown).await?.0
        }
        None => the_one_that_waits(connector, args.connect.protocol, Request::ToolPermission).await?,
    };
    let waiting = chat_client.waiting().into_iter().filter(|waiting| Request::ToolPermission.is(waiting)).collect();
    match only(waiting, args.request.as_deref(), &chat_client, "permission")? {
        PendingRequest::ToolPermission(permission) => Ok((chat_client, permission)),
        PendingRequest::Questions { .. } | PendingRequest::Elsewhere { .. } => {
            Err(anyhow!("no permission request is pending").into())
        }
    }
}

/// Stores a rule that allows a permission request and later ones; without a number, lists the rules on offer.
fn always(common: &Common, args: &PermissionArgs, target: AlwaysTarget, number: Option<usize>) -> Result<(), Failure> {
    let target = match target {
        AlwaysTarget::Session => RuleTarget::Session,
        AlwaysTarget::Repository => RuleTarget::Repository,
        AlwaysTarget::Everywhere => RuleTarget::Everywhere,
    };
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let (chat_client, mut permission) = the_permission(&connector, args).await?;
        *permission.offers = chat_client.rule_offers(&permission).await;
        permission.offers.targets.retain(|offered| offered.target == target);
        let choices = permission.always_choices();
        if choices.is_empty() {
            return Err(Failure::NotFound(
                "no rule can answer this request: approve it once, without --always".to_owned(),
            ));
        }
        let Some(number) = number else {
            if args.json {
                let session = chat_client.uri();
                return Ok(print_line(
                    json!({"session": session, "request": permission.request, "offers": permission.offers}),
                )?);
            }
            for (at, (choice, words)) in choices.iter().enumerate() {
                print_line(format!("{} {}", at + 1, sanitize(words)))?;
                for line in choice.rule.toml.lines() {
                    print_line(format!("    {}", sanitize(line)))?;
                }
            }
            anstream::eprintln!("nothing is stored yet: --rule N stores one of them");
            return Ok(());
        };
        let choice = number.checked_sub(1).and_then(|at| choices.into_iter().nth(at));
        let (choice, _) = choice.ok_or_else(|| Failure::NotFound(format!("there is no rule {number} on offer")))?;
        let allowed = chat_client.allow_always(&permission, choice).await?;
        if args.json {
            let stored = json!({"session": chat_client.uri(), "request": permission.request, "approved": true,
                "rule": allowed.text, "file": allowed.file});
            return Ok(print_line(stored)?);
        }
        let at = allowed.file.map(|file| format!(" ({file})")).unwrap_or_default();
        Ok(print_line(sanitize(&format!("always: {}{at}", allowed.text)))?)
    })
}

/// The kind of request that a command answers.
#[derive(Clone, Copy)]
enum Request {
    ToolPermission,
    Question,
}

impl Request {
    const fn word(self) -> &'static str {
        match self {
            Request::ToolPermission => "permission request",
            Request::Question => "question",
        }
    }

    fn is(self, waiting: &PendingRequest) -> bool {
        match self {
            Request::ToolPermission => matches!(waiting, PendingRequest::ToolPermission(_)),
            Request::Question => matches!(waiting, PendingRequest::Questions { .. }),
        }
    }
}

/// The only session of any host in which such a request waits.
async fn the_one_that_waits(
    connector: &HostConnector,
    protocol: Protocol,
    request: Request,
) -> Result<AnyChatClient, Failure> {
    if protocol == Protocol::V1 {
        return Err(anyhow!("version 1 does not tell which sessions wait: name one, or leave out --protocol v1").into());
    }
    let mut found = Vec::new();
    for name in connector.waiting_sessions().await? {
        let (chat_client, _) = AnyChatClient::join(connector, protocol, &name, None, OutputFormat::Shown).await?;
        let waiting: Vec<PendingRequest> =
            chat_client.waiting().into_iter().filter(|waiting| request.is(waiting)).collect();
        if !waiting.is_empty() {
            found.push((name, chat_client, waiting));
        }
    }
    let word = request.word();
    match (found.pop(), found.len()) {
        (None, _) => Err(Failure::NotFound(format!(
            "no {word} waits in any session: `grove ls --waiting` lists those that wait for an answer"
        ))),
        (Some((_, chat_client, _)), 0) => Ok(chat_client),
        (Some(last), others) => {
            found.push(last);
            let line = |name: &str, waiting: &PendingRequest| format!("  {name}  {}", sanitize(&waiting.summary()));
            let lines = found.iter().flat_map(|(name, _, all)| all.iter().map(move |waiting| line(name, waiting)));
            let lines: Vec<String> = lines.collect();
            let lines = lines.join("\n");
            Err(anyhow!("{word}s wait in {} sessions: name the session\n{lines}", others + 1).into())
        }
    }
}

/// The named request, or the only pending one.
fn only(
    mut waiting: Vec<PendingRequest>,
    named: Option<&str>,
    chat_client: &impl ChatClient,
    what: &str,
) -> Result<PendingRequest, Failure> {
    let id = id_of(chat_client.uri());
    if let Some(named) = named {
        let at = waiting.iter().position(|waiting| waiting.id() == named);
        let missing = || Failure::NotFound(format!("no {what} {named:?} waits in {id}"));
        return at.map(|at| waiting.swap_remove(at)).ok_or_else(missing);
    }
    match (waiting.pop(), waiting.len()) {
        (Some(only), 0) => Ok(only),
        (None, _) => Err(Failure::NotFound(format!("no {what} waits in {id}"))),
        (Some(last), others) => {
            waiting.push(last);
            let list: Vec<String> =
                waiting.iter().map(|waiting| format!("  {}  {}", waiting.id(), sanitize(&waiting.summary()))).collect();
            let list = list.join("\n");
            Err(anyhow!("{} {what}s wait in {id}: name one after the session\n{list}", others + 1).into())
        }
    }
}

pub(crate) fn answer(common: &Common, args: &AnswerArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let (protocol, texts) = (args.connect.protocol, &args.text);
        if protocol == Protocol::V1 {
            return Err(anyhow!("version 1 has no questions: leave out --protocol v1").into());
        }
        let (mut chat_client, texts) = match &args.session {
            // One word alone is the answer, not the session.
            Some(text) if texts.is_empty() && !args.decline => {
                must_be_an_answer(&connector, text).await?;
                (the_one_that_waits(&connector, protocol, Request::Question).await?, std::slice::from_ref(text))
            }
            Some(session) => (
                AnyChatClient::join(&connector, protocol, session, None, OutputFormat::Shown).await?.0,
                texts.as_slice(),
            ),
            None => (the_one_that_waits(&connector, protocol, Request::Question).await?, texts.as_slice()),
        };
        let waiting =
            chat_client.waiting().into_iter().filter(|waiting| matches!(waiting, PendingRequest::Questions { .. }));
        let waiting = only(waiting.collect(), args.request.as_deref(), &chat_client, "question")?;
        let PendingRequest::Questions { chat, request } = waiting else {
            return Err(anyhow!("no question is pending").into());
        };
        let answers = if args.decline { None } else { Some(answers(&request, texts)?) };
        let id = request.id.clone();
        start(&mut chat_client, ChatCommand::Answer { chat, request: id.clone(), answers }).await?;
        if args.json {
            return Ok(print_line(json!({"session": chat_client.uri(), "request": id, "answered": !args.decline}))?);
        }
        Ok(print_line(if args.decline { "declined" } else { "answered" })?)
    })
}

/// How short a word may be that is taken for the beginning of a session's id. A shorter one may be an option's number.
const SHORTEST_ID: usize = 4;

/// Refuses a single word that names a session: its answer was forgotten, and nobody wants the name to be the answer.
async fn must_be_an_answer(connector: &HostConnector, word: &str) -> Result<(), Failure> {
    if word.chars().count() < SHORTEST_ID {
        return Ok(());
    }
    match AnyChatClient::join(connector, Protocol::Ahp, word, None, OutputFormat::Shown).await {
        Ok((chat_client, _)) => {
            let id = id_of(chat_client.uri());
            Err(anyhow!("{word:?} is a session, and no answer is given: `grove answer {id} TEXT` answers it").into())
        }
        Err(Failure::NotFound(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

type InputAnswers = Vec<(String, grove_wire::ahp::ChatInputAnswer)>;

/// The answers from one text per question, in their order.
fn answers(request: &ChatInputRequest, texts: &[String]) -> Result<InputAnswers, Failure> {
    let questions = request.questions.as_deref().unwrap_or_default();
    // Questions at the end that need no answer may be left out.
    let needed = questions.iter().rposition(question_dialog::needs_answer).map_or(0, |last| last + 1);
    if texts.len() < needed.max(1).min(questions.len()) || texts.len() > questions.len() {
        let list: Vec<String> = questions.iter().map(question_dialog::listed).collect();
        let (wanted, given, list) = (questions.len(), texts.len(), sanitize(&list.join("\n")));
        return Err(anyhow!(
            "{wanted} answers are needed, one text for each question, but {given} were given:\n{list}"
        )
        .into());
    }
    let texts = texts.iter().map(String::as_str).chain(std::iter::repeat(""));
    let answer = |(question, text): (_, &str)| {
        let answer = question_dialog::answer(question, text)
            .map_err(|why| anyhow!("{}: {why}", question_dialog::wording(question)))?;
        Ok((question_dialog::id(question).to_owned(), answer))
    };
    questions.iter().zip(texts).map(answer).collect()
}
