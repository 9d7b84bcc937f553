//! What each rule finds, and what it leaves alone.

use super::*;

fn found(path: &str, text: &str) -> Vec<(usize, String)> {
    let findings = check_sources(&[Source::parse(path, text)]);
    findings
        .into_iter()
        .map(|finding| (finding.line, finding.message))
        .collect()
}

fn found_in_text(path: &str, text: &str) -> Vec<Finding> {
    check_texts(&[Text {
        path: path.to_owned(),
        text: text.to_owned(),
    }])
}

#[test]
fn the_core_knows_no_clock_thread_socket_or_librdkafka() {
    let words = [
        "let t = Instant::now();",
        "use std::time::SystemTime;",
        "std::thread::sleep(d);",
        "use std::net::TcpStream;",
        "pub async fn f() {}",
        "x.await;",
        "use tokio::sync::mpsc;",
        "use rdkafka::message::Message;",
    ];
    for line in words {
        for path in ["streams-core/src/task/queue.rs", "streams-dsl/src/builder.rs"] {
            let findings = found(path, line);
            assert_eq!(findings.len(), 1, "{path}: {line}: {findings:?}");
        }
        assert!(
            found("streams-core/src/kafka/consumer.rs", line).is_empty(),
            "the shell may: {line}"
        );
        assert!(
            found("streams-core/src/task/queue.rs", &format!("// {line}\n")).is_empty(),
            "a comment may: {line}"
        );
    }
}

#[test]
fn stores_own_threads_and_files_but_no_clock_and_no_network() {
    assert!(found("streams-state/src/rocks/restore.rs", "std::thread::spawn(f);").is_empty());
    assert_eq!(
        found("streams-state/src/rocks/restore.rs", "let t = SystemTime::now();").len(),
        1
    );
    assert_eq!(found("streams-state/src/memory.rs", "use rdkafka::Offset;").len(), 1);
}

#[test]
fn words_inside_longer_names_are_other_words() {
    assert!(
        found(
            "streams-core/src/task.rs",
            "let x = InstantaneousRate::new(); non_rdkafka(); my_unsafe();"
        )
        .is_empty()
    );
}

#[test]
fn library_code_does_not_panic() {
    for line in [
        "x.unwrap();",
        "x.expect(message);",
        "panic!(message)",
        "todo!()",
        "unimplemented!()",
        "unreachable!()",
    ] {
        assert_eq!(found("streams-dsl/src/names.rs", line).len(), 1, "{line}");
        assert!(found("examples/word-count/src/main.rs", line).is_empty(), "{line}");
        let in_test = format!("#[cfg(test)]\nmod tests {{\n    #[test]\n    fn f() {{ {line} assert!(g()); }}\n}}\n");
        assert!(found("streams-dsl/src/names.rs", &in_test).is_empty(), "{line}");
    }
    assert!(
        found(
            "streams-dsl/src/names.rs",
            "x.unwrap_or_default(); y.expect_err(z); catch_panic!();"
        )
        .is_empty()
    );
}

#[test]
fn unsafe_is_argued_in_one_folder_only() {
    assert_eq!(
        found("streams-core/src/kafka/consumer.rs", "let x = unsafe { f() };").len(),
        1
    );
    assert_eq!(found("benches/src/peer.rs", "unsafe impl Send for X {}").len(), 1);
    assert!(found("streams-core/src/kafka/ffi/queue.rs", "let x = unsafe { f() };").is_empty());
    assert!(found("streams-core/src/lib.rs", "#![deny(unsafe_code)]").is_empty());
}

#[test]
fn ignored_tests_are_refused() {
    let text = "#[test]\n#[ignore = \"slow\"]\nfn f() { assert!(g()); }\n";
    assert_eq!(found("tests/tests/broker.rs", text).len(), 1);
    let body = "#[test]\n#[ignore = \"run by starter\"]\nfn body() { assert!(g()); }\n";
    assert_eq!(found("tests/tests/broker.rs", body).len(), 1, "nothing starts it");
    let started = format!("{body}#[test]\nfn starter() {{ assert!(start(\"body\")); }}\n");
    assert!(found("tests/tests/broker.rs", &started).is_empty());
}

#[test]
fn tests_assert_something() {
    assert_eq!(
        found("tests/tests/offline.rs", "#[test]\nfn f() { g(); } // assert\n").len(),
        1
    );
    assert!(found("tests/tests/offline.rs", "#[test]\nfn f() { assert_eq!(g(), 1); }\n").is_empty());
    assert!(found("tests/src/lib.rs", "fn f() { g(); }\n").is_empty());
}

#[test]
fn files_have_at_most_700_lines() {
    let lines = |count: usize| Text {
        path: "streams-core/src/a.rs".to_owned(),
        text: "x\n".repeat(count),
    };
    assert!(check_texts(&[lines(700)]).is_empty());
    assert_eq!(check_texts(&[lines(701)]).len(), 1);
    assert!(long_files(&[lines(400)]).is_empty());
    assert_eq!(long_files(&[lines(401)]).len(), 1);
    assert!(long_files(&[lines(701)]).is_empty(), "refused already");
}

#[test]
fn the_project_holds_no_path_of_a_machine_and_reads_nothing_outside() {
    for folder in ["home", "root", "work"] {
        assert_eq!(
            found_in_text("README.md", &format!("see `/{folder}/me/x`\n")).len(),
            1,
            "{folder}"
        );
        assert!(
            found_in_text("README.md", &format!("https://example.org/{folder}/x\n")).is_empty(),
            "{folder}"
        );
        assert!(
            found_in_text("README.md", &format!("target/{folder}/x\n")).is_empty(),
            "{folder}"
        );
    }
    assert_eq!(
        found_in_text("tests/src/lib.rs", &format!("let x = \"../{}/cases\";\n", "shared")).len(),
        1
    );
}
