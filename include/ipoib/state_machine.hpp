// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A function that the state machines share, except PathLife, whose on() also updates its timeout from the step. Each of
// them is a class with a state and on(event), which returns the step that its owner performs.
#pragma once

namespace ipoib {

// Enters a step's next state.
template <class State, class Step>
constexpr Step enter(State& state, Step step)
{
    state = step.next;
    return step;
}

} // namespace ipoib
