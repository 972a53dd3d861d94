// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// sysfs: any text for any file, of any interface; and all readable files.
#include "session.hpp"
#include "targets.hpp"

namespace ipoib::fuzz {

void sysfs(Input& input)
{
    // Inputs name operations by index: new ones are added at the end.
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
