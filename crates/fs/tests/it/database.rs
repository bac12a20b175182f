//! `session.db` and the todo list in it.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use grove_fixtures::outside;
use grove_fs::LocalFs;
use grove_fs::workspace::database::{Cell, Database, DatabaseError, LocalDatabase, NoDatabase, Statement};
use grove_fs::workspace::{Todo, TodoStatus, Todos};

fn database() -> (LocalDatabase, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (LocalDatabase::new(LocalFs::new(folder.path()), "session-state/s1"), folder)
}

pub(crate) fn todo(id: &str, depends_on: &[&str]) -> Todo {
    Todo {
        id: id.to_owned(),
        title: format!("do {id}"),
        description: None,
        status: TodoStatus::Pending,
        depends_on: depends_on.iter().map(|other| (*other).to_owned()).collect(),
    }
}

#[tokio::test]
async fn looking_makes_no_database() {
    let (database, folder) = database();
    assert!(!database.exists().await.unwrap());
    assert_eq!(Todos::of(&database).list().await.unwrap(), []);
    assert!(!Todos::of(&database).remove("a").await.unwrap());
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[tokio::test]
async fn todos_are_put_changed_and_removed() {
    let (database, folder) = database();
    let todos = Todos::of(&database);
    todos.put(&todo("b", &[])).await.unwrap();
    todos.put(&todo("a", &["b"])).await.unwrap();
    let changed = Todo { status: TodoStatus::InProgress, description: Some("it's; --".into()), ..todo("b", &[]) };
    todos.put(&changed).await.unwrap();
    assert_eq!(todos.list().await.unwrap(), [changed, todo("a", &["b"])]);
    assert!(todos.remove("b").await.unwrap());
    assert_eq!(todos.list().await.unwrap(), [todo("a", &[])]);
    let mode = std::fs::metadata(folder.path().join("session-state/s1/session.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_plan_takes_the_place_of_the_one_before_it_and_leaves_what_others_put_there() {
    let (database, folder) = database();
    let todos = Todos::of(&database);
    todos.set_plan([]).await.unwrap();
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "a plan without entries makes no database");
    todos.put(&todo("mine", &[])).await.unwrap();
    let told = async || {
        let list = todos.list().await.unwrap();
        list.into_iter().map(|todo| (todo.id, todo.title, todo.status)).collect::<Vec<_>>()
    };
    let row = |id: &str, title: &str, status| (id.to_owned(), title.to_owned(), status);
    todos.set_plan([("read", TodoStatus::InProgress), ("write", TodoStatus::Pending)]).await.unwrap();
    todos.put(&todo("after", &["plan-2"])).await.unwrap();
    todos.set_plan([("read", TodoStatus::Done)]).await.unwrap();
    assert_eq!(
        told().await,
        [
            row("mine", "do mine", TodoStatus::Pending),
            row("plan-1", "read", TodoStatus::Done),
            row("after", "do after", TodoStatus::Pending)
        ]
    );
    assert_eq!(todos.list().await.unwrap()[2].depends_on, [""; 0], "what is gone is waited for no more");
    todos.set_plan([]).await.unwrap();
    assert_eq!(told().await.len(), 2);
}

#[tokio::test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
async fn the_todos_of_a_real_session_are_read() {
    let fixtures = outside("copilot-cli");
    let real = fixtures.join("local-sdk-full-and-forks/11111111-1111-4111-8111-111111111111/session.db");
    let (database, folder) = database();
    let copy = folder.path().join("session-state/s1/session.db");
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::write(copy, std::fs::read(real).unwrap()).unwrap();
    let todos = Todos::of(&database);
    let first = Todo { title: "first".into(), ..todo("a", &[]) };
    assert_eq!(todos.list().await.unwrap(), std::slice::from_ref(&first));
    todos.put(&todo("z", &["a"])).await.unwrap();
    assert_eq!(todos.list().await.unwrap(), [first, todo("z", &["a"])]);
}

#[tokio::test]
async fn a_transaction_does_everything_or_nothing() {
    let (database, _folder) = database();
    database.query(Statement::exec("CREATE TABLE t (a INTEGER PRIMARY KEY, b); SELECT 1;")).await.unwrap();
    let insert = |a: i64| Statement::run("INSERT INTO t VALUES (:a, $b)").with("a", a).with("$b", "x");
    let done = database.transaction(vec![insert(1), insert(2)]).await.unwrap();
    assert_eq!(done.iter().map(|rows| (rows.changed, rows.last_row)).collect::<Vec<_>>(), [(1, Some(1)), (1, Some(2))]);
    let failed = database.transaction(vec![insert(3), insert(3)]).await.unwrap_err();
    assert!(matches!(failed, DatabaseError::Sql { .. }), "{failed}");
    let rows = database.query(Statement::query("SELECT a, b, NULL AS n, 0.5, x'00' FROM t ORDER BY a")).await.unwrap();
    assert_eq!(rows.columns[..3], ["a", "b", "n"]);
    let row = |a| vec![Cell::Integer(a), Cell::from("x"), Cell::Null, Cell::Real(0.5), Cell::Blob(vec![0])];
    assert_eq!(rows.rows, [row(1), row(2)]);
    let unknown = database.query(Statement::query("SELECT :a").with("b", 1)).await.unwrap_err();
    assert_eq!(unknown, DatabaseError::NoParameter { name: "b".into() });
}

#[tokio::test]
async fn those_who_write_at_once_wait_for_each_other() {
    let (database, _folder) = database();
    database.query(Statement::exec("CREATE TABLE t (a)")).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for a in 0..8 {
        let database = database.clone();
        tasks.spawn(async move {
            database.transaction(vec![Statement::run("INSERT INTO t VALUES (:a)").with("a", a)]).await
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap().unwrap();
    }
    let count = database.query(Statement::query("SELECT count(*) FROM t")).await.unwrap();
    assert_eq!(count.rows, [[Cell::Integer(8)]]);
}

#[tokio::test]
async fn statements_see_no_other_file() {
    let (database, folder) = database();
    database.query(Statement::exec("CREATE TABLE t (a)")).await.unwrap();
    for (name, sql) in [("attached", "ATTACH '{}' AS other"), ("vacuumed", "VACUUM INTO '{}'")] {
        let path = folder.path().join(name);
        let sql = sql.replace("{}", &path.display().to_string());
        assert!(matches!(database.query(Statement::exec(sql)).await, Err(DatabaseError::Sql { .. })), "{name}");
        assert!(!path.exists(), "{name}");
    }
    let elsewhere = folder.path().join("elsewhere.db");
    std::fs::rename(folder.path().join("session-state/s1/session.db"), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, folder.path().join("session-state/s1/session.db")).unwrap();
    let through_link = database.query(Statement::query("SELECT * FROM t")).await;
    assert!(matches!(through_link, Err(DatabaseError::Sql { .. })), "{through_link:?}");
}

#[tokio::test]
async fn a_statement_gives_no_more_than_its_bound() {
    let (database, _folder) = database();
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100001) SELECT i FROM n";
    let rows = database.query(Statement::query(rows)).await.unwrap_err();
    assert_eq!(rows, DatabaseError::TooMuch { limit: 100_000, what: "rows" });
    let bytes = database.query(Statement::query("SELECT zeroblob(20000000)")).await.unwrap_err();
    assert_eq!(bytes, DatabaseError::TooMuch { limit: 16 * 1024 * 1024, what: "bytes" });
}

const ENDLESS: &str =
    "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n WHERE i = 0";

#[tokio::test]
async fn a_statement_that_nobody_waits_for_is_stopped() {
    let (database, _folder) = database();
    database.query(Statement::exec("CREATE TABLE t (a)")).await.unwrap();
    let endless = database.query(Statement::run(ENDLESS));
    assert!(tokio::time::timeout(Duration::from_millis(300), endless).await.is_err());
    // If it still held the file, this would time out.
    database.query(Statement::run("INSERT INTO t VALUES (1)")).await.unwrap();
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_stopped() {
    let (database, _folder) = database();
    database.query(Statement::exec("CREATE TABLE t (a)")).await.unwrap();
    let longest = Duration::from_millis(200);
    let stopped = database.clone().with_longest(longest).query(Statement::run(ENDLESS)).await.unwrap_err();
    assert_eq!(stopped, DatabaseError::TooSlow { longest });
    database.query(Statement::run("INSERT INTO t VALUES (1)")).await.unwrap();
}

#[tokio::test]
async fn a_store_without_a_database_says_so() {
    let todos = Todos::of(&NoDatabase);
    assert_eq!(todos.list().await.unwrap(), []);
    assert_eq!(todos.put(&todo("a", &[])).await.unwrap_err(), DatabaseError::Unsupported);
    assert_eq!(NoDatabase.query(Statement::query("SELECT 1")).await.unwrap_err(), DatabaseError::Unsupported);
}
