//! What statements mean, by the rules of T-SQL and without a wire.

use super::super::value::Value;
use super::run::{Answer, Session, Step, parse};
use super::{Database, Login, SqlError, World};

struct Bench {
    world: World,
    session: Session,
}

impl Bench {
    fn new(script: &str) -> Self {
        let mut world = World::new(|| (739_832, 0));
        let collation = world.collation;
        world.databases.push(Database::new("shop", collation));
        let login = Login { name: "sa".to_owned(), password: String::new(), administrator: true, databases: Vec::new() };
        let session = Session::new(51, login, world.database("shop").unwrap());
        let mut bench = Self { world, session };
        bench.run(script).unwrap_or_else(|error| panic!("{error}"));
        bench
    }

    /// Runs a script, and gives the rows of its last result as text.
    fn run(&mut self, script: &str) -> Result<Vec<String>, SqlError> {
        let mut rows = Vec::new();
        let mut statements = std::collections::VecDeque::from(parse(script)?);
        while let Some(statement) = statements.pop_front() {
            match self.world.run(&mut self.session, &statement)? {
                Step::Blocked => return Err(SqlError::lock_timeout()),
                Step::Done(Answer::Statements(inner)) => inner.into_iter().rev().for_each(|one| statements.push_front(one)),
                Step::Done(Answer::Rows(set)) => {
                    let shown = |values: Vec<Value>| values.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
                    rows = (0..set.lines.len()).map(|at| set.row(at).map(shown)).collect::<Result<_, _>>()?;
                }
                Step::Done(_) => {}
            }
        }
        Ok(rows)
    }

    fn rows(&mut self, script: &str) -> Vec<String> {
        self.run(script).unwrap_or_else(|error| panic!("{error} in {script}"))
    }

    fn error(&mut self, script: &str) -> i32 {
        self.run(script).map_or_else(|error| error.number, |rows| panic!("{script} gives {rows:?}"))
    }
}

fn numbers() -> Bench {
    Bench::new(
        "CREATE TABLE t (id int NOT NULL CONSTRAINT t_id PRIMARY KEY, v int, s varchar(10));
         INSERT INTO t VALUES (3, 30, 'c'), (1, 10, 'a'), (2, NULL, 'B'), (5, 50, NULL), (4, 10, 'a ')",
    )
}

#[test]
fn a_keyset_page_is_the_next_rows_in_order_with_and_without_an_index() {
    for index in ["", "; ALTER TABLE t DROP CONSTRAINT t_id"] {
        let mut bench = numbers();
        bench.rows(&format!("SELECT 1{index}"));
        assert_eq!(bench.rows("DECLARE @p bigint = 2; SELECT TOP (2) id, v FROM t WHERE id > @p ORDER BY id"), ["3|30", "4|10"]);
        assert_eq!(bench.rows("SELECT TOP 2 id FROM t ORDER BY id DESC"), ["5", "4"]);
        assert_eq!(bench.rows("SELECT id FROM t WHERE id >= 2 AND id < 4 ORDER BY id"), ["2", "3"]);
        assert_eq!(bench.rows("SELECT TOP (0) id FROM t WHERE 1 = 1 ORDER BY id"), Vec::<String>::new());
        assert_eq!(bench.rows("SELECT id FROM t WHERE id > 4 AND id < 2 ORDER BY id"), Vec::<String>::new());
        assert_eq!(bench.rows("SELECT MAX(id), MIN(id), COUNT_BIG(*), COUNT(v), SUM(v) FROM t"), ["5|1|5|4|100"]);
        assert_eq!(bench.rows("SELECT COUNT_BIG(*) FROM t WHERE id > 1 AND id <= 4"), ["3"]);
        assert_eq!(bench.rows("SELECT MAX(id) FROM t WHERE id < 4"), ["3"]);
        assert_eq!(bench.rows("DELETE FROM t; SELECT MAX(id), COUNT(*) FROM t"), ["NULL|0"]);
    }
}

#[test]
fn a_null_is_neither_equal_nor_different() {
    let mut bench = numbers();
    assert_eq!(bench.rows("SELECT id FROM t WHERE v <> 10 ORDER BY id"), ["3", "5"]);
    assert_eq!(bench.rows("SELECT id FROM t WHERE NOT (v = 10) ORDER BY id"), ["3", "5"]);
    assert_eq!(bench.rows("SELECT id FROM t WHERE v IS NULL OR v > 40 ORDER BY id"), ["2", "5"]);
    assert_eq!(bench.rows("SELECT id FROM t WHERE id NOT IN (SELECT v FROM t)"), Vec::<String>::new(), "a NULL in the list");
    assert_eq!(bench.rows("SELECT ISNULL(s, 'none'), COALESCE(v, 0) FROM t WHERE id IN (2, 5) ORDER BY id"), ["B|0", "none|50"]);
}

#[test]
fn text_compares_without_trailing_spaces_and_by_the_collations_case() {
    let mut bench = numbers();
    assert_eq!(bench.rows("SELECT id FROM t WHERE s = 'A' ORDER BY id"), ["1", "4"]);
    assert_eq!(bench.rows("SELECT id FROM t WHERE s = 'b' COLLATE Latin1_General_CS_AS"), ["2"], "the column's collation is first");
    let mut sensitive = Bench::new(
        "ALTER DATABASE CURRENT COLLATE SQL_Latin1_General_CP1_CS_AS; CREATE TABLE T (a int, A int); INSERT INTO T VALUES (1, 2)",
    );
    assert_eq!(sensitive.rows("SELECT A FROM T"), ["2"]);
    assert_eq!(sensitive.error("SELECT a FROM t"), 208);
    assert_eq!(numbers().rows("SELECT ID FROM T WHERE ID = 1"), ["1"]);
}

#[test]
fn joins_keep_and_drop_what_they_should() {
    let mut bench = numbers();
    bench.rows("CREATE TABLE u (id int, w int); INSERT INTO u VALUES (1, 100), (1, 101), (3, 300)");
    assert_eq!(bench.rows("SELECT t.id, u.w FROM t INNER JOIN u ON u.id = t.id ORDER BY u.w"), ["1|100", "1|101", "3|300"]);
    assert_eq!(
        bench.rows("SELECT t.id, u.w FROM t LEFT JOIN u ON u.id = t.id AND u.w > 100 WHERE t.id < 4 ORDER BY t.id"),
        ["1|101", "2|NULL", "3|300"]
    );
    assert_eq!(
        bench.rows("SELECT t.id, x.n FROM t CROSS APPLY (SELECT COUNT(*) AS n FROM u WHERE u.id = t.id) AS x WHERE x.n > 0 ORDER BY t.id"),
        ["1|2", "3|1"]
    );
    assert_eq!(bench.rows("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id) ORDER BY id"), ["1", "3"]);
    assert_eq!(bench.rows("SELECT id, COUNT(*) FROM u GROUP BY id HAVING COUNT(*) > 1"), ["1|2"]);
    assert_eq!(bench.error("SELECT id FROM t, u"), 209);
    assert_eq!(bench.error("SELECT id, v FROM t GROUP BY id"), 8120);
}

#[test]
fn conversions_are_those_of_the_server() {
    let mut bench = Bench::new("SELECT 1");
    for (expression, expected) in [
        ("CAST(922337203685477.5807 AS money)", "9223372036854775807"),
        ("CAST(CAST(922337203685477.5807 AS money) AS decimal(19, 4))", "9223372036854775807"),
        ("CAST(1.005 AS decimal(5, 2))", "101"),
        ("CAST(-1.999 AS int)", "-1"),
        ("CAST(CAST(1.5 AS money) AS int)", "2"),
        ("CONVERT(varchar(30), CAST('2026-08-05 10:15:30.1234567' AS datetime2), 126)", "2026-08-05T10:15:30.1234567"),
        ("CONVERT(varchar(50), 0x0A0B, 1)", "0x0A0B"),
        ("CAST(CAST(N'é' AS varchar(5)) AS varbinary(5))", "Binary([233])"),
        ("CAST(CAST('2026-08-05 23:59:59.999' AS datetime) AS date)", "Date(739833)"),
        ("CAST('12' AS int) + 1", "13"),
        ("1 + 1.50", "250"),
        ("TRY_CAST('x' AS int)", "NULL"),
        ("CAST(SQL_VARIANT_PROPERTY(CAST(1 AS sql_variant), 'BaseType') AS nvarchar(20))", "int"),
        ("CASE WHEN 1 = 2 THEN 'a' END", "NULL"),
        ("LEN(N'ab  ')", "2"),
    ] {
        assert_eq!(bench.rows(&format!("SELECT {expression}")), [expected], "{expression}");
    }
    for (expression, number) in [
        ("CAST('x' AS int)", 245),
        ("CAST(256 AS tinyint)", 8115),
        ("CAST('no date' AS date)", 241),
        ("CAST('1700-01-01' AS datetime)", 242),
        ("CAST(1 AS date)", 529),
        ("1 / 0", 8134),
        ("CAST(REPLICATE('9', 39) AS decimal(38, 0))", 8114),
    ] {
        assert_eq!(bench.error(&format!("SELECT {expression}")), number, "{expression}");
    }
}

#[test]
fn what_is_no_value_is_no_value_and_what_is_no_condition_is_none() {
    let mut bench = numbers();
    assert_eq!(bench.error("SELECT 1 = 1"), 102);
    assert_eq!(bench.error("SELECT id FROM t WHERE id"), 4145);
    assert_eq!(bench.error("SELECT id FROM t WHERE"), 102);
    assert_eq!(bench.error("SELECT frobnicate(id) FROM t"), 195);
    assert!(
        bench.run("SELECT state FROM sys.frobs").is_err_and(|error| error.number == 208 && error.refusal),
        "a gap of the catalog is noted"
    );
    assert!(bench.run("SELECT frob FROM sys.tables").is_err_and(|error| error.number == 207 && error.refusal));
}

#[test]
fn a_table_is_what_its_definition_says_in_the_catalog() {
    let mut bench = Bench::new(
        "CREATE TABLE dbo.x (id decimal(10, 0) NOT NULL CONSTRAINT x_id UNIQUE, m money MASKED WITH (FUNCTION = 'default()') NULL,
           e int ENCRYPTED WITH (COLUMN_ENCRYPTION_KEY = k, ENCRYPTION_TYPE = RANDOMIZED, ALGORITHM = 'A') NULL, c AS id * 2 PERSISTED, n sysname);
         CREATE UNIQUE INDEX x_m ON dbo.x (m) INCLUDE (c) WHERE m > 0;
         ALTER INDEX x_id ON dbo.x DISABLE",
    );
    let columns = "SELECT c.name, t.name, c.precision, c.scale, c.is_nullable, c.is_computed, c.is_masked, c.encryption_type FROM sys.columns AS c \
                   INNER JOIN sys.types AS t ON t.user_type_id = c.system_type_id WHERE c.object_id = OBJECT_ID(N'dbo.x') ORDER BY c.column_id";
    assert_eq!(
        bench.rows(columns),
        [
            "id|decimal|10|0|0|0|0|NULL",
            "m|money|19|4|1|0|1|NULL",
            "e|int|10|0|1|0|0|2",
            "c|numeric|21|0|0|1|0|NULL",
            "n|nvarchar|0|0|0|0|0|NULL"
        ]
    );
    let indexes = "SELECT i.name, i.type, i.is_unique, i.is_unique_constraint, i.is_disabled, i.has_filter, x.key_ordinal FROM sys.indexes AS i \
                   INNER JOIN sys.index_columns AS x ON x.object_id = i.object_id AND x.index_id = i.index_id ORDER BY i.name, x.index_column_id";
    assert_eq!(bench.rows(indexes), ["x_id|2|1|1|1|0|1", "x_m|2|1|0|0|1|1", "x_m|2|1|0|0|1|0"]);
}

#[test]
fn a_reader_is_denied_a_table_a_column_or_the_sight_of_either() {
    let mut bench = numbers();
    bench.rows("CREATE TABLE m (id int, secret int MASKED WITH (FUNCTION = 'default()')); INSERT INTO m VALUES (1, 42)");
    bench.session.login = Login { name: "reader".to_owned(), administrator: false, ..bench.session.login };
    assert_eq!(bench.rows("SELECT secret, MAX(secret) FROM m WHERE secret = 42 GROUP BY secret").len(), 1);
    assert_eq!(bench.rows("SELECT secret FROM m"), ["0"], "a mask");
    assert_eq!(bench.error("CREATE TABLE own (id int)"), 262);
    let administrator = Login { name: "sa".to_owned(), administrator: true, ..bench.session.login.clone() };
    let reader = std::mem::replace(&mut bench.session.login, administrator);
    bench.rows("DENY SELECT ON dbo.t (v) TO reader; DENY SELECT ON dbo.m TO reader; DENY VIEW DEFINITION ON dbo.m TO reader");
    bench.session.login = reader;
    assert_eq!(bench.error("SELECT v FROM t"), 230);
    assert_eq!(bench.rows("SELECT COUNT(*) FROM t"), ["5"]);
    assert_eq!(bench.error("SELECT id FROM m"), 229);
    assert_eq!(bench.rows("SELECT name FROM sys.tables"), ["t"]);
}

#[test]
fn a_statement_is_whole_or_not_at_all_and_a_transaction_too() {
    let mut bench = numbers();
    assert_eq!(bench.error("INSERT INTO t VALUES (6, 60, 'f'), (1, 0, 'again')"), 2627);
    assert_eq!(bench.rows("SELECT COUNT(*) FROM t"), ["5"]);
    bench.rows("BEGIN TRAN; INSERT INTO t VALUES (6, 60, 'f'); DELETE FROM t WHERE id = 1; UPDATE t SET v = 0 WHERE id = 2");
    assert_eq!(bench.error("INSERT INTO t VALUES (7, 70, 'g'), (6, 0, 'again')"), 2627);
    assert_eq!(
        bench.rows("SELECT id, v FROM t ORDER BY id"),
        ["2|0", "3|30", "4|10", "5|50", "6|60"],
        "what came before the failure stays"
    );
    bench.rows("ROLLBACK");
    assert_eq!(bench.rows("SELECT id, v FROM t ORDER BY id"), ["1|10", "2|NULL", "3|30", "4|10", "5|50"]);
    assert_eq!(bench.error("COMMIT"), 3902);
}

#[test]
fn a_row_in_flight_is_waited_for_passed_over_or_read_as_the_reader_asks() {
    let mut bench = numbers();
    let mut other = bench.session.clone();
    let begin = parse("BEGIN TRAN; INSERT INTO t VALUES (6, 60, 'f'); DELETE FROM t WHERE id = 2").unwrap();
    for statement in &begin {
        bench.world.run(&mut other, statement).unwrap();
    }
    let page = "SELECT id FROM t WHERE id > 1 ORDER BY id";
    assert_eq!(bench.error(page), 1222, "locks");
    assert_eq!(bench.rows("SELECT TOP (1) id FROM t WHERE id > 2 ORDER BY id"), ["3"], "a row that is not reached is not waited for");
    assert_eq!(bench.rows("SELECT id FROM t WITH (NOLOCK) WHERE id > 1 ORDER BY id"), ["3", "4", "5", "6"]);
    assert_eq!(bench.rows("SELECT id FROM t WITH (READPAST) WHERE id > 1 ORDER BY id"), ["3", "4", "5"]);
    bench.rows("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON");
    assert_eq!(bench.rows(page), ["2", "3", "4", "5"], "the last committed versions");
    assert_eq!(bench.error("SELECT id FROM t WITH (READCOMMITTEDLOCK) WHERE id > 1 ORDER BY id"), 1222);
    bench.world.run(&mut other, &parse("COMMIT").unwrap()[0]).unwrap();
    assert_eq!(bench.rows(page), ["3", "4", "5", "6"]);
}

#[test]
fn an_identity_goes_on_after_a_rollback_and_begins_anew_after_a_truncate() {
    let mut bench = Bench::new("CREATE TABLE t (id int IDENTITY(10, 5) PRIMARY KEY, v int)");
    bench.rows("INSERT INTO t (v) VALUES (1); BEGIN TRAN; INSERT INTO t (v) VALUES (2); ROLLBACK; INSERT INTO t (v) VALUES (3)");
    assert_eq!(bench.rows("SELECT id FROM t ORDER BY id"), ["10", "20"]);
    assert_eq!(bench.error("INSERT INTO t (id, v) VALUES (1, 1)"), 544);
    bench.rows("SET IDENTITY_INSERT t ON; INSERT INTO t (id, v) VALUES (100, 1); SET IDENTITY_INSERT t OFF; INSERT INTO t (v) VALUES (4)");
    assert_eq!(bench.rows("SELECT MAX(id) FROM t"), ["105"]);
    bench.rows("DBCC CHECKIDENT ('t', RESEED, 0); DELETE FROM t; INSERT INTO t (v) VALUES (5)");
    assert_eq!(bench.rows("SELECT id FROM t"), ["5"]);
    bench.rows("TRUNCATE TABLE t; INSERT INTO t (v) VALUES (6)");
    assert_eq!(bench.rows("SELECT id FROM t"), ["10"]);
}
