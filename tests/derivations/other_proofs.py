"""What stands beside the proofs by algebra of this folder; proofs.md is made of both.

Each value is the place of a test, ``path::function``, which carries the tag in its mark.
"""

# No algebra proves these: why, and the test that shows what can be shown, where neither exact
# arithmetic nor enumeration does.
NOT_ALGEBRA = {
    "K2": (
        "a name for 2P numbers: nothing to derive",
        "tests/gradients/test_reparameterised.py::test_coordinates_are_named_down_to_the_layer",
    ),
    "M10": (
        "an algorithm that leaves a density invariant: by enumeration",
        "tests/sampling/test_invariance.py::test_exact_draws_stay_exact_draws",
    ),
    "D52": (
        "an algorithm that leaves a density invariant: by enumeration",
        "tests/sampling/mcmc/test_slice_form.py::"
        "test_what_is_equal_in_the_two_forms_and_what_is_not",
    ),
    "D38": (
        "a rule for what may be used when",
        "tests/studies/test_mullachery_sp500.py::"
        "test_inputs_of_a_day_do_not_change_by_one_bit_with_later_prices",
    ),
}

# Gradients and values that are proved in exact arithmetic on the shipped code, too.
VALUES = "tests/gradients/test_exact.py::test_every_value_is_the_textbook_formula_exactly"
MAPS = "tests/studies/test_transforms.py::test_the_maps_and_their_jacobians_are_proved"
EXACT_ARITHMETIC = {
    "K5": VALUES,
    "K17": VALUES,
    "K18": VALUES,
    "M8": "tests/sampling/mcmc/test_exact_invariance.py::"
    "test_the_leapfrog_preserves_volume_and_undoes_itself_without_any_rounding",
    "M14": MAPS,
    "M15": MAPS,
    "M17": MAPS,
    "D44": "tests/gradients/test_exact.py::test_every_gradient_is_that_of_its_value_exactly",
    "D54": "tests/training/test_laplace.py::test_tangents_go_forward_and_jacobians_are_proved",
    "D58": "tests/model/test_objectives.py::"
    "test_the_bound_to_train_on_is_the_textbooks_and_its_cotangents_its_slopes_exactly",
    "D55": "tests/training/test_laplace.py::test_the_slopes_of_the_log_evidence_are_proved",
}

# Kernels that are proved by the whole transition matrix of a small case, too.
KERNELS = "tests/sampling/mcmc/test_exact_invariance.py::"
BALANCE = KERNELS + "test_metropolis_hastings_is_in_detailed_balance_for_every_proposal"
NUTS = KERNELS + "test_nuts_leaves_every_orbit_invariant_all_paths_of_decisions_counted"
MAMS = KERNELS + "test_mams_leaves_every_orbit_and_its_reverse_invariant"
ENUMERATION = {
    "M5": BALANCE,
    "M6": BALANCE,
    "M7": KERNELS + "test_hmc_leaves_every_orbit_and_its_reverse_invariant",
    "M9": KERNELS + "test_nuts_of_four_doublings_leaves_every_orbit_invariant",
    "M10": NUTS,
    "M12": NUTS,
    "D47": KERNELS + "test_every_path_of_chees_leaves_every_orbit_and_its_reverse_invariant",
    "D48": MAMS,
    "D49": MAMS,
    "D52": "tests/sampling/mcmc/test_slice_form.py::"
    "test_both_forms_of_nuts_leave_the_weights_of_an_orbit_invariant",
    "D57": "tests/evaluation/test_certificate.py::"
    "test_the_bound_fails_for_at_most_delta_of_all_data_sets_whatever_q_they_choose",
    "D64": "tests/sampling/mcmc/test_stochastic.py::"
    "test_the_law_under_real_minibatches_by_enumeration",
    "M20": KERNELS + "test_annealed_weights_and_places_have_the_expectation_of_the_target",
}
