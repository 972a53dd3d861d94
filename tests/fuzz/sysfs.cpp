// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Files: any text for any of them, of any interface; and all that can be read.
#include "session.hpp"
#include "targets.hpp"

namespace ipoib::fuzz {

void sysfs(Input& input)
{
    // Inputs name them by their place: more of them go to the end.
    static constexpr Operation table[] = {
        {"store", &Session::store},
        {"store_word", &Session::store_word},
        {"show", &Session::show},
        {"find", &Session::find},
        {"open", &Session::open},
        {"close", &Session::close},
        {"answer_join", &Session::answer_join},
        {"create_link", &Session::create_link},
        {"work", &Session::work},
        {"pass_time", &Session::pass_time},
        {"lack_memory", &Session::lack_memory},
        {"change_moderation", &Session::change_moderation},
        {"change_rings", &Session::change_rings},
    };
    Session session(input);
    session.play(table);
}

} // namespace ipoib::fuzz
