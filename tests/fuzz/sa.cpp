// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Subnet administrator: responses for paths and groups, of any status and content, late and early.
#include "session.hpp"
#include "targets.hpp"

namespace ipoib::fuzz {

void sa(Input& input)
{
    // Inputs name operations by index: new ones are added at the end.
    static constexpr Operation table[] = {
        {"answer_path", &Session::answer_path},
        {"answer_join", &Session::answer_join},
        {"forget_membership", &Session::forget_membership},
        {"send", &Session::send},
        {"change_groups", &Session::change_groups},
        {"raise_event", &Session::raise_event},
        {"change_port", &Session::change_port},
        {"answer_when_cancelled", &Session::answer_when_cancelled},
        {"work", &Session::work},
        {"pass_time", &Session::pass_time},
        {"complete", &Session::complete},
        {"open", &Session::open},
        {"close", &Session::close},
        {"lack_memory", &Session::lack_memory},
        {"show", &Session::show},
    };
    Session session(input);
    session.play(table);
}

} // namespace ipoib::fuzz
