//! Any record at all comes back from the store as it was, and so does its file.

use proptest::prelude::*;

use super::*;
use crate::tests::any_record::records;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_record_comes_back_from_the_store(record in records()) {
        STORE.with_borrow_mut(|(_folder, store)| {
            let id = store.insert(record.clone()).unwrap();
            prop_assert_eq!(id, record.id());
            let found = store.find(&id.to_string()).unwrap();
            prop_assert!(found.is_unchanged());
            prop_assert_eq!(to_json(&found.record).unwrap(), to_json(&record).unwrap());
            prop_assert_eq!(found.record, record);
            Ok(())
        })?;
    }
}

thread_local! {
    /// One store for all cases: records that differ do not disturb one another.
    static STORE: std::cell::RefCell<(tempfile::TempDir, Store)> = new_store().into();
}
