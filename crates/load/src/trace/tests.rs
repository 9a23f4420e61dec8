//! Traces: the forms that are read, and what is refused.

use std::io::Write as _;

use super::*;

fn written(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// `at_us:prompt+output[blocks]` of each row, and how many were left out.
fn check(text: &str, want: &str) {
    let file = written(text);
    let shown = |row: &Row| {
        let blocks: Vec<String> = row.blocks.iter().map(u64::to_string).collect();
        let blocks =
            if blocks.is_empty() { String::new() } else { format!("[{}]", blocks.join(" ")) };
        format!("{}:{}+{}{blocks}", row.at_us, row.prompt_tokens, row.output_tokens)
    };
    let found = match read(file.path()) {
        Ok(trace) => {
            let rows: Vec<String> = trace.rows.iter().map(shown).collect();
            format!("{} -{}", rows.join(" "), trace.skipped)
        }
        Err(error) => error.to_string().replace(&file.path().display().to_string(), "FILE"),
    };
    assert_eq!(found, want);
}

#[test]
fn every_form_is_read() {
    // The columns of testdata/traces, in any order, with a byte order mark and line ends of Windows.
    check(
        "\u{feff}arrival_ms,prompt_tokens,output_tokens\r\n5,374,44\r\n\r\n9.5,396,109\r\n",
        "0:374+44 4500:396+109 -0",
    );
    check(
        "output_tokens,arrival_ms,prompt_tokens,prefix_hash_ids\n3,0,600,0-2 7\n4,1,5,\n",
        "0:600+3[0 1 2 7] 1000:5+4 -0",
    );
    // Azure's own, over the end of a leap day.
    check(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n\
         2024-02-29 23:59:59.9000000,10,2\n2024-03-01 00:00:00.1500000,11,3\n",
        "0:10+2 250000:11+3 -0",
    );
    // BurstGPT's, in seconds, with a request that failed.
    check(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
         5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,0,1087,Conversation log\n\
         118,GPT-4,417,276,693,API log\n",
        "0:472+18 113000000:417+276 -1",
    );
    // Mooncake's.
    check(
        "{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, 47]}\n\
         {\"timestamp\": 30535, \"input_length\": 6472, \"output_length\": 26}\n",
        "0:6955+52[46 47] 3053000:6472+26 -0",
    );
}

#[test]
fn what_is_no_trace_is_refused_by_line_and_column() {
    check("", "the trace `FILE` has no requests");
    check("arrival_ms,prompt_tokens,output_tokens\n", "the trace `FILE` has no requests");
    check(
        "a,b,c\n1,2,3\n",
        "`FILE` is no trace: its first line names no arrival, prompt and output columns",
    );
    let check_line = |line: &str, want: &str| {
        check(&format!("arrival_ms,prompt_tokens,output_tokens,prefix_hash_ids\n{line}\n"), want);
    };
    check_line("x,1,1,", "line 2 of the trace `FILE` has no valid arrival");
    check_line("nan,1,1,", "line 2 of the trace `FILE` has no valid arrival");
    check_line("1,1.5,1,", "line 2 of the trace `FILE` has no valid prompt");
    check_line("1,9999999,1,", "line 2 of the trace `FILE` has no valid prompt");
    check_line("1,1", "line 2 of the trace `FILE` has no valid output");
    check_line("1,1,-1,", "line 2 of the trace `FILE` has no valid output");
    check_line("1,1,1,5-3", "line 2 of the trace `FILE` has no valid blocks");
    check_line("1,1,1,0-18446744073709551615", "line 2 of the trace `FILE` has no valid blocks");
    check_line("5,1,1,\n4,1,1,", "line 3 of the trace `FILE` arrives before the one above it");
    check(
        "{\"timestamp\": 1}\n",
        "line 1 of the trace `FILE` has no valid timestamp, input_length and output_length",
    );
}

#[test]
fn a_missing_file_is_the_worlds_failure() {
    let error = read(Path::new("no/such/trace.csv")).unwrap_err();
    assert!(!error.is_callers_mistake());
    assert!(error.to_string().contains("cannot read the trace `no/such/trace.csv`"));
}

#[test]
fn the_samples_have_the_sums_of_their_sources() {
    let check = |name: &str, want: (usize, u32, u32, u64)| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/traces");
        let rows = read(&Path::new(folder).join(name)).unwrap().rows;
        let prompt = rows.iter().map(|row| row.prompt_tokens).sum();
        let output = rows.iter().map(|row| row.output_tokens).sum();
        assert_eq!((rows.len(), prompt, output, rows.last().unwrap().at_us), want, "{name}");
        for row in rows.iter().filter(|row| !row.blocks.is_empty()) {
            assert_eq!(row.blocks.len(), usize::try_from(row.prompt_tokens).unwrap().div_ceil(512));
        }
    };
    check("azure_conv.csv", (40, 27_985, 4_430, 24_146_296));
    check("azure_code.csv", (40, 105_353, 902, 34_284_439));
    check("mooncake_conversation.csv", (30, 424_999, 11_656, 9_000_000));
}
