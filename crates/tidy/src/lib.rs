//! The walls between the rooms, kept as tests.
