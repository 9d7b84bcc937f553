//! Mermaid flowcharts.

use std::fmt::Write as _;

use super::drawing::{Drawing, LineKind, Shape, ShapeKind};

/// Colours that can be read on light and dark pages.
const STYLES: [(&str, &str); 2] = [
    ("topic", "fill:#fff3d6,stroke:#b7791f,color:#1a202c"),
    ("store", "fill:#dff3e4,stroke:#2f855a,color:#1a202c"),
];

pub(super) fn text(drawing: &Drawing) -> String {
    let mut text = String::from("flowchart TB\n");
    // Writing to a string does not fail.
    let _ = write(&mut text, drawing);
    text
}

fn write(text: &mut String, drawing: &Drawing) -> std::fmt::Result {
    for topic in &drawing.topics {
        writeln!(text, "    {}", shape(topic))?;
    }
    for frame in &drawing.frames {
        writeln!(text, "    subgraph g{}[\"{}\"]", frame.id, escaped(&frame.title))?;
        for one in &frame.shapes {
            writeln!(text, "        {}", shape(one))?;
        }
        writeln!(text, "    end")?;
    }
    for line in &drawing.lines {
        let arrow = match line.kind {
            LineKind::Records => "-->",
            LineKind::Uses => "---",
            LineKind::LooksInto => "-.->",
        };
        writeln!(text, "    {} {arrow} {}", line.from, line.to)?;
    }
    for (class, style) in STYLES {
        let shapes = drawing
            .topics
            .iter()
            .chain(drawing.frames.iter().flat_map(|frame| &frame.shapes));
        let ids: Vec<&str> = shapes
            .filter(|shape| class_of(shape.kind) == Some(class))
            .map(|shape| shape.id.as_str())
            .collect();
        if !ids.is_empty() {
            writeln!(text, "    classDef {class} {style}")?;
            writeln!(text, "    class {} {class}", ids.join(","))?;
        }
    }
    Ok(())
}

fn class_of(kind: ShapeKind) -> Option<&'static str> {
    match kind {
        ShapeKind::Topic | ShapeKind::Repartition | ShapeKind::ChosenTopic => Some("topic"),
        ShapeKind::Store => Some("store"),
        ShapeKind::Source | ShapeKind::Processor | ShapeKind::Sink => None,
    }
}

fn shape(shape: &Shape) -> String {
    let (open, close) = match shape.kind {
        ShapeKind::Topic => ("([", "])"),
        ShapeKind::Repartition => ("[[", "]]"),
        ShapeKind::ChosenTopic => ("{{", "}}"),
        ShapeKind::Source | ShapeKind::Sink => ("(", ")"),
        ShapeKind::Processor => ("[", "]"),
        ShapeKind::Store => ("[(", ")]"),
    };
    let lines: Vec<String> = shape.text.iter().map(|line| escaped(line)).collect();
    format!("{}{open}\"{}\"{close}", shape.id, lines.join("<br/>"))
}

/// Everything but what no grammar of Mermaid's or HTML's takes for its own becomes `#code;`, Mermaid's escape.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() || " -_.,:/()[]+=@".contains(c) {
            out.push(c);
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}
