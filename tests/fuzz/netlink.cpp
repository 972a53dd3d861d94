// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// rtnetlink: children created, changed and deleted with any attributes, on any interface.
#include "session.hpp"
#include "targets.hpp"

namespace ipoib::fuzz {

void netlink(Input& input)
{
    // Inputs name operations by index: new ones are added at the end.
    static constexpr Operation table[] = {
        {"create_link", &Session::create_link},
        {"change_link", &Session::change_link},
        {"delete_link", &Session::delete_link},
        {"open", &Session::open},
        {"close", &Session::close},
        {"change_mtu", &Session::change_mtu},
        {"answer_join", &Session::answer_join},
        {"show", &Session::show},
        {"work", &Session::work},
        {"pass_time", &Session::pass_time},
        {"lack_memory", &Session::lack_memory},
        {"store_word", &Session::store_word},
        {"change_address", &Session::change_address},
    };
    Session session(input);
    session.play(table);
}

} // namespace ipoib::fuzz
