//! Any name is drawn, and never read as part of the language of the picture. The pictures of real topologies are golden
//! files of the DSL's tests.

use super::super::test_support::{node, source, store, topology};
use super::super::{AutoOffsetReset, SinkTopic, SourceTopic, Topology};

/// A topology all of whose names hold `odd`. No build would let it pass; a picture of it shows why.
fn odd(odd: &str) -> Topology {
    let name = |what: &str| format!("{what}{odd}");
    let mut topology = Topology::new();
    let topics = vec![SourceTopic::external(&name("in"))];
    topology.add_source(&name("source"), topics, AutoOffsetReset::Configured, source());
    topology.add_processor(&name("step"), &[&name("source")], node());
    topology.add_store(store(&name("rows")));
    topology.connect_store(&name("step"), &name("rows"));
    let chooser = SinkTopic::Dynamic(name("chooser"));
    topology.add_sink(&name("sink"), &[&name("step")], chooser, node());
    topology
}

const ODD: [&str; 9] = [
    "\"", "\\", "\"]; end", "<b>", "&quot;", "#quot;", "\n", "`code`", "}; %% {{",
];

#[test]
fn odd_names_leave_the_shape_of_a_mermaid_chart_alone() {
    let plain = odd("").to_mermaid();
    for text in ODD {
        let chart = odd(text).to_mermaid();
        // What is left without the texts in quotes.
        let frame = |chart: &str| {
            let parts: Vec<String> = chart.split('"').step_by(2).map(str::to_owned).collect();
            parts.join("\"")
        };
        assert_eq!(frame(&chart), frame(&plain), "{text:?} in\n{chart}");
        let quoted: String = chart.split('"').skip(1).step_by(2).collect();
        let bare = quoted.replace("<br/>", "");
        assert!(!bare.contains(['<', '>', '&', '`', '%', '{']), "{text:?} in\n{chart}");
    }
}

#[test]
fn odd_names_leave_the_shape_of_a_graph_alone() {
    let plain = without_texts(&odd("").to_dot());
    for text in ODD {
        let graph = odd(text).to_dot();
        assert_eq!(without_texts(&graph), plain, "{text:?} in\n{graph}");
    }
}

/// The graph without the quoted texts, read as Graphviz reads them: a backslash takes the next character with it.
fn without_texts(graph: &str) -> String {
    let (mut out, mut inside) = (String::new(), false);
    let mut chars = graph.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if inside => drop(chars.next()),
            '"' => {
                inside = !inside;
                out.push('"');
            }
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

#[test]
fn a_topic_between_two_sub_topologies_is_one_shape() {
    let topology = topology(&[
        "source a: in",
        "sink b: =re < a",
        "source c: =re",
        "proc d < c [rows]",
        "sink e: out < d",
    ]);
    let chart = topology.to_mermaid();
    assert_eq!(chart.matches("\"re\"").count(), 1, "{chart}");
    let re = chart
        .lines()
        .find(|line| line.contains("[[\"re\"]]"))
        .unwrap_or_default();
    let id = re.trim().split('[').next().unwrap_or_default();
    assert!(chart.contains(&format!("--> {id}\n")), "{chart}");
    assert!(chart.contains(&format!("    {id} --> ")), "{chart}");
}

#[test]
fn a_topic_and_a_repartition_topic_of_one_name_are_two_shapes() {
    let chart = topology(&["source a: x", "sink b: =x < a"]).to_mermaid();
    assert!(chart.contains("([\"x\"])") && chart.contains("[[\"x\"]]"), "{chart}");
}

#[test]
fn a_look_into_a_global_store_is_a_dashed_line_and_in_both_pictures() {
    let topology = topology(&["global g: tg gs gp", "source a: in", "proc p < a [g]"]);
    let (chart, graph) = (topology.to_mermaid(), topology.to_dot());
    assert!(chart.contains("    s0 -.-> n3\n"), "{chart}");
    assert!(graph.contains("    s0 -> n3 [style=dashed];\n"), "{graph}");
    assert!(chart.contains("subgraph g0[\"global store, number 0\"]"), "{chart}");
}
