//! streams-testkit
