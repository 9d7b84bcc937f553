//! streams-state
