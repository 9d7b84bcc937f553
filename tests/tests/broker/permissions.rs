//! Permissions that a broker refuses: the application stops and says which one is missing, on what, and what to type.

use std::sync::OnceLock;

use streams_dsl::KafkaStreams;
use streams_testkit::{Kafka, KafkaOptions};
use streams_tests::acls::{Operation, Resource, deny};
use streams_tests::local::{LIMIT, Local, stop, wait_error, wait_running};

/// A broker that asks for permissions where there is a rule.
fn strict_broker() -> &'static Kafka {
    static BROKER: OnceLock<Kafka> = OnceLock::new();
    BROKER.get_or_init(|| {
        let options = KafkaOptions::own_broker()
            .setting(
                "authorizer.class.name",
                "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            )
            .setting("allow.everyone.if.no.acl.found", "true");
        Kafka::start(options).unwrap()
    })
}

/// A count that may do everything but this. `of` names the resource by the application's id.
///
/// A topic is made behind the rule: the broker learns of both in one order, so it knows the rule when it shows the topic.
fn without(resource: Resource, of: impl Fn(&str) -> String, operation: Operation) -> Local {
    let mut app = Local::on(strict_broker(), "denied", |builder, names| {
        let stream = builder.stream::<String, String>(names.of("in"));
        stream.group_by_key().count("c").to_stream().to(names.of("out"));
    });
    app.topic("in", 1, &[]);
    app.topic("out", 1, &[]);
    deny(app.kafka().bootstrap(), resource, &of(&app.id), operation);
    app.kafka().create_topic(&format!("{}.behind", app.id), 1, &[]).unwrap();
    app
}

fn assert_names(error: &str, words: &[&str]) {
    for word in words {
        assert!(error.contains(word), "{word} is missing: {error}");
    }
    assert!(error.contains("kafka-acls.sh"), "what to type is missing: {error}");
}

fn fails(app: &Local) -> String {
    let streams: KafkaStreams = app.start();
    // Some permissions are needed only when there is work.
    if wait_for_running_or_error(&streams) {
        app.produce("in", &[("a", Some("x"), 1)]);
    }
    wait_error(&streams)
}

fn wait_for_running_or_error(streams: &KafkaStreams) -> bool {
    use streams_dsl::State;
    streams.wait_for(LIMIT, |state| state == State::Running || state.is_final());
    streams.state() == State::Running
}

#[test]
fn an_input_that_may_not_be_read_stops_the_application_and_is_named() {
    let app = without(Resource::Topic, |id| format!("{id}.in"), Operation::Read);
    let error = wait_error(&app.start());
    assert_names(&error, &[app.name("in"), "Read"]);
}

#[test]
fn an_input_that_may_not_be_described_stops_the_application_and_is_named() {
    let app = without(Resource::Topic, |id| format!("{id}.in"), Operation::Describe);
    let error = wait_error(&app.start());
    assert_names(&error, &[app.name("in"), "Describe"]);
}

#[test]
fn an_output_that_may_not_be_written_stops_the_application_and_is_named() {
    let app = without(Resource::Topic, |id| format!("{id}.out"), Operation::Write);
    let error = fails(&app);
    assert_names(&error, &[app.name("out"), "Write"]);
}

#[test]
fn a_changelog_that_may_not_be_written_stops_the_application_and_is_named() {
    let app = without(Resource::Topic, |id| format!("{id}-c-changelog"), Operation::Write);
    let error = fails(&app);
    assert_names(&error, &[&app.changelog("c"), "Write"]);
}

#[test]
fn a_changelog_that_may_not_be_read_stops_a_restore_and_is_named() {
    let app = without(Resource::Topic, |id| format!("{id}-c-changelog"), Operation::Read);
    let streams = app.start();
    wait_running(&streams);
    app.produce("in", &[("a", Some("x"), 1)]);
    app.wait_committed(&streams, "in", 1);
    stop(&streams);
    app.wipe();
    let error = wait_error(&app.start());
    assert_names(&error, &[&app.changelog("c"), "Read"]);
}

#[test]
fn a_changelog_whose_settings_may_not_be_read_stops_the_application_and_is_named() {
    let app = without(
        Resource::Topic,
        |id| format!("{id}-c-changelog"),
        Operation::DescribeConfigs,
    );
    let error = wait_error(&app.start());
    assert_names(&error, &[&app.changelog("c"), "DescribeConfigs"]);
}

#[test]
fn a_transactional_id_that_may_not_be_used_stops_the_application_and_is_named() {
    let app = without(Resource::TransactionalId, str::to_owned, Operation::Write);
    let error = wait_error(&app.start());
    assert_names(&error, &[&app.id, "Write", "transactional id"]);
}

#[test]
fn a_group_that_may_not_be_used_stops_the_application_and_is_named() {
    let app = without(Resource::Group, str::to_owned, Operation::Read);
    let error = wait_error(&app.start());
    assert_names(&error, &[&app.id, "Read", "group"]);
}

#[test]
fn internal_topics_that_may_not_be_made_stop_the_application_and_are_named() {
    let app = without(Resource::Topic, |id| format!("{id}-c-changelog"), Operation::Create);
    // What the cluster allows counts for every topic, so it says the same.
    deny(
        app.kafka().bootstrap(),
        Resource::Cluster,
        "kafka-cluster",
        Operation::Create,
    );
    let error = wait_error(&app.start());
    assert_names(&error, &[&app.changelog("c"), "Create"]);
}
