"""What stands beside the proofs by algebra of this folder; proofs.md is made of both.

Each value is the place of a test, ``path::function``, which carries the tag in its mark.
"""

# No algebra proves these: why, and the test that shows what can be shown.
NOT_ALGEBRA = {
    "K2": (
        "a name for 2P numbers: nothing to derive",
        "tests/gradients/test_reparameterised.py::test_coordinates_are_named_down_to_the_layer",
    ),
    "M7": (
        "an algorithm that leaves a density invariant",
        "tests/sampling/mcmc/test_hmc.py::"
        "test_the_acceptance_is_exp_of_minus_the_energy_error_of_the_path",
    ),
    "M10": (
        "an algorithm that leaves a density invariant",
        "tests/sampling/test_invariance.py::test_a_tree_whose_subtrees_are_not_checked_is_caught",
    ),
    "M11": (
        "a search that settles where the acceptance is as wanted",
        "tests/sampling/mcmc/test_adaptation.py::test_the_first_updates_by_hand",
    ),
    "M12": (
        "choices of windows and of what regularises",
        "tests/sampling/mcmc/test_adaptation.py::"
        "test_running_moments_are_the_covariance_within_chains",
    ),
    "M20": (
        "an algorithm whose mean weight is the evidence",
        "tests/sampling/test_annealing.py::test_the_mean_weight_is_the_evidence",
    ),
    "M21": (
        "statements about sums over all data sets",
        "tests/studies/test_mullachery_occam.py::"
        "test_every_model_has_probability_one_for_all_data_sets",
    ),
    "M22": (
        "statements about distributions of a p value",
        "tests/evaluation/test_model_checks.py::"
        "test_prior_p_values_are_uniform_and_posterior_ones_are_not",
    ),
    "D38": (
        "a rule for what may be used when",
        "tests/studies/test_mullachery_sp500.py::"
        "test_inputs_of_a_day_do_not_change_by_one_bit_with_later_prices",
    ),
}

# Gradients and values that are proved in exact arithmetic on the shipped code, too.
EXACT_ARITHMETIC: dict[str, str] = {}

# Kernels that are proved by the whole transition matrix of a small case, too.
ENUMERATION: dict[str, str] = {}
