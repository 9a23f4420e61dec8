//! A slow path is told where nobody asked for it.

use causeway_kernels::Isa;

use super::slow_notice;

#[test]
fn only_a_scalar_path_that_nobody_asked_for_is_told() {
    for isa in Isa::ALL {
        assert_eq!(slow_notice(isa, true), None, "{isa:?}");
        assert_eq!(slow_notice(isa, false).is_some(), isa == Isa::Scalar, "{isa:?}");
    }
    assert!(slow_notice(Isa::Scalar, false).is_some_and(|notice| notice.contains("AVX2")));
}
