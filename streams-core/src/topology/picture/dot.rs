//! Graphs for Graphviz.

use std::fmt::Write as _;

use super::drawing::{Drawing, LineKind, Shape, ShapeKind};

pub(super) fn text(drawing: &Drawing) -> String {
    let mut text = String::from("digraph topology {\n    node [fontname=\"sans-serif\"];\n");
    // Writing to a string does not fail.
    let _ = write(&mut text, drawing);
    text.push_str("}\n");
    text
}

fn write(text: &mut String, drawing: &Drawing) -> std::fmt::Result {
    for topic in &drawing.topics {
        writeln!(text, "    {}", shape(topic))?;
    }
    for frame in &drawing.frames {
        writeln!(text, "    subgraph cluster_{} {{", frame.id)?;
        writeln!(text, "        label={};", quoted(&frame.title))?;
        for one in &frame.shapes {
            writeln!(text, "        {}", shape(one))?;
        }
        writeln!(text, "    }}")?;
    }
    for line in &drawing.lines {
        let how = match line.kind {
            LineKind::Records => "",
            LineKind::Uses => " [dir=none]",
            LineKind::LooksInto => " [style=dashed]",
        };
        writeln!(text, "    {} -> {}{how};", line.from, line.to)?;
    }
    Ok(())
}

fn shape(shape: &Shape) -> String {
    let how = match shape.kind {
        ShapeKind::Topic => "shape=box, style=\"rounded,filled\", fillcolor=\"#fff3d6\"",
        ShapeKind::Repartition => "shape=box, peripheries=2, style=\"rounded,filled\", fillcolor=\"#fff3d6\"",
        ShapeKind::ChosenTopic => "shape=hexagon, style=filled, fillcolor=\"#fff3d6\"",
        ShapeKind::Source | ShapeKind::Sink => "shape=box, style=rounded",
        ShapeKind::Processor => "shape=box",
        ShapeKind::Store => "shape=cylinder, style=filled, fillcolor=\"#dff3e4\"",
    };
    format!("{} [label={}, {how}];", shape.id, quoted(&shape.text.join("\n")))
}

/// A quoted text. A backslash would begin one of Graphviz's escapes (`\N` is the shape's id), a quote would end it.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            // HTML entities are read inside labels too.
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
