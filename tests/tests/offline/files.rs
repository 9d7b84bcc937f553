//! The files that this project carries are the ones their descriptions speak of.

use std::collections::BTreeSet;

use serde_json::Value;
use streams_tests::project_file;

fn text(path: &str) -> String {
    std::fs::read_to_string(project_file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn rows(path: &str) -> Vec<Vec<String>> {
    let fields = |line: &str| line.split(',').map(str::to_owned).collect();
    text(path).lines().skip(1).map(fields).collect()
}

#[test]
fn the_sample_is_january_2013_whole() {
    let path = "examples/usage-billing/data/flights.csv";
    let header = "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,\
                  tailnum,origin,dest,air_time,distance,hour,minute,time_hour";
    assert_eq!(text(path).lines().next(), Some(header));
    let flights = rows(path);
    assert_eq!(flights.len(), 27_004);
    assert!(flights.iter().all(|row| row.len() == 19));
    assert!(flights.iter().all(|row| row[0] == "2013" && row[1] == "1"));
    let days: BTreeSet<_> = flights.iter().map(|row| row[2].as_str()).collect();
    assert_eq!(days.len(), 31);
    let origins: BTreeSet<_> = flights.iter().map(|row| row[12].as_str()).collect();
    assert_eq!(origins, BTreeSet::from(["EWR", "JFK", "LGA"]));
    // The dirt that makes it worth billing.
    assert!(flights.iter().any(|row| row[3] == "NA") && flights.iter().any(|row| row[11] == "NA"));
}

#[test]
fn every_carrier_of_the_sample_has_a_name_and_some_aircraft_are_unknown() {
    let airlines: BTreeSet<_> = rows("examples/usage-billing/data/airlines.csv")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    let planes: BTreeSet<_> = rows("examples/usage-billing/data/planes.csv")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    assert_eq!((airlines.len(), planes.len()), (16, 3_322));
    let flights = rows("examples/usage-billing/data/flights.csv");
    assert!(flights.iter().all(|row| airlines.contains(&row[9])));
    let known = flights.iter().filter(|row| planes.contains(&row[11]));
    assert!((1..27_004).contains(&known.count()));
}

#[test]
fn the_given_cases_have_distinct_names_and_the_machine_readable_ones_can_be_run() {
    let given: Value = serde_json::from_str(&text("tests/cases/given.json")).unwrap();
    let cases = given["cases"].as_array().unwrap();
    let names: BTreeSet<_> = cases.iter().map(|case| case["id"].as_str().unwrap()).collect();
    assert_eq!((cases.len(), names.len()), (76, 76));
    let runnable: Vec<_> = cases.iter().filter(|case| case["run"] == "ttd").collect();
    assert!(!runnable.is_empty());
    for case in runnable {
        assert!(
            case["topology"].is_array() && case["steps"].is_array() && !case["expect"].is_null(),
            "{}",
            case["id"]
        );
    }
}

#[test]
fn the_golden_file_and_the_peers_are_of_one_kafka_version() {
    let golden: Value = serde_json::from_str(&text("tests/golden/golden-formats.json")).unwrap();
    let version = golden["kafka_streams_version"].as_str().unwrap();
    let wanted = format!("<kafka.version>{version}</kafka.version>");
    assert!(text("tests/peers/pom.xml").contains(&wanted));
    assert!(text("streams-testkit/assets/broker-pom.xml").contains(&format!("<version>{version}</version>")));
}
