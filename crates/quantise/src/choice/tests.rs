//! Types by name, shape and layer.

use super::{Choice, Rule, Target, layers, matches};
use causeway_weights::{DType, Tensor};

fn choice(target: Target, is_pure: bool, rules: &[&str]) -> Choice {
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    Choice { target, rules, is_pure, allows_requantising: false }
}

fn check(choice: &Choice, name: &str, shape: &[usize], want: DType) {
    let tensor = Tensor { name, dtype: DType::F16, shape, bytes: &[] };
    assert_eq!(choice.dtype(&tensor, false, 24), want, "{name} {shape:?}");
}

#[test]
fn the_mix_gives_more_bits_where_they_count() {
    let mix = choice(Target::Q4K, false, &[]);
    check(&mix, "output.weight", &[512, 256], DType::Q6_K);
    check(&mix, "output.weight", &[512, 96], DType::Q8_0);
    check(&mix, "token_embd.weight", &[512, 256], DType::Q4_K);
    check(&mix, "blk.0.attn_v.weight", &[64, 256], DType::Q6_K);
    check(&mix, "blk.3.attn_v.weight", &[64, 256], DType::Q4_K);
    check(&mix, "blk.5.ffn_down.weight", &[64, 256], DType::Q6_K);
    check(&mix, "blk.23.ffn_down.weight", &[64, 256], DType::Q6_K);
    check(&mix, "blk.3.attn_q.weight", &[64, 96], DType::Q5_0);
    check(&mix, "blk.3.attn_q.weight", &[64, 33], DType::F16);
    check(&mix, "blk.3.attn_norm.weight", &[256], DType::F32);
    check(&mix, "blk.3.ffn_gate_inp.weight", &[8, 256], DType::F32);
    let pure = choice(Target::Q4K, true, &[]);
    check(&pure, "output.weight", &[512, 256], DType::Q4_K);
    check(&choice(Target::Q8_0, false, &[]), "output.weight", &[512, 256], DType::Q8_0);
    check(&choice(Target::Q4_0, false, &[]), "output.weight", &[512, 256], DType::Q6_K);
}

#[test]
fn the_first_rule_that_matches_decides() {
    let rules = ["blk.1.*=q8_0", "*.ffn_*.weight=q5_k", "blk.2.attn_norm.weight=f16"];
    let choice = choice(Target::Q4_0, true, &rules);
    check(&choice, "blk.1.ffn_up.weight", &[64, 256], DType::Q8_0);
    check(&choice, "blk.2.ffn_up.weight", &[64, 256], DType::Q5_K);
    check(&choice, "blk.2.attn_norm.weight", &[256], DType::F16);
    check(&choice, "blk.1.attn_norm.weight", &[256], DType::F32);
    check(&choice, "blk.2.ffn_norm.weight", &[256], DType::F32);
    check(&choice, "blk.2.attn_q.weight", &[64, 256], DType::Q4_0);
}

#[test]
fn mxfp4_stays_unless_it_is_said_otherwise() {
    let check = |choice: &Choice, want: DType| {
        let (name, dtype) = ("blk.0.ffn_up_exps.weight", DType::MXFP4);
        let tensor = Tensor { name, dtype, shape: &[2, 4, 256], bytes: &[] };
        assert_eq!(choice.dtype(&tensor, false, 24), want, "{choice:?}");
    };
    let kept = choice(Target::Q8_0, false, &[]);
    check(&kept, DType::MXFP4);
    check(&Choice { allows_requantising: true, ..kept }, DType::Q8_0);
    check(&choice(Target::Q8_0, false, &["*_exps.weight=q4_k"]), DType::Q4_K);
}

#[test]
fn patterns_and_layers() {
    assert!(matches("a*b*c", "axxbyyc") && matches("*", "") && matches("a*", "a"));
    assert!(!matches("a*b", "ab1") && !matches("ab*b", "ab") && !matches("a", "ab"));
    assert_eq!(layers(["blk.0.x", "blk.11.y", "output", "blk.z.y"].into_iter()), 12);
}

#[test]
fn what_is_no_rule_is_refused() {
    let refused = |rule: &str| rule.parse::<Rule>().unwrap_err().to_string();
    assert_eq!(refused("a"), "`a` is no rule: PATTERN=TYPE is, as in blk.*.attn_v.weight=q8_0");
    assert!(refused("a=q9").starts_with("`q9` is no type that is written: q8_0"));
    assert!("iq4_xs".parse::<Target>().is_err());
    assert_eq!("Q4_K".parse::<Target>(), Ok(Target::Q4K));
}
