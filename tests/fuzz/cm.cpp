// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Communication manager: REQs, REPs and all other messages with any private data, in any order, amid traffic.
#include "session.hpp"
#include "targets.hpp"

namespace ipoib::fuzz {

void cm(Input& input)
{
    // Inputs name operations by index: new ones are added at the end.
    static constexpr Operation table[] = {
        {"request", &Session::request},
        {"reply", &Session::reply},
        {"say", &Session::say},
        {"send", &Session::send},
        {"answer_path", &Session::answer_path},
        {"receive_message", &Session::receive_message},
        {"complete", &Session::complete},
        {"work", &Session::work},
        {"pass_time", &Session::pass_time},
        {"change_cm", &Session::change_cm},
        {"lack_memory", &Session::lack_memory},
        {"store_word", &Session::store_word},
        {"poll", &Session::poll},
        {"close", &Session::close},
        {"open", &Session::open},
        {"change_flags", &Session::change_flags},
        {"receive_message_on_ours", &Session::receive_message_on_ours},
    };
    Session session(input);
    session.bring_up();
    session.play(table);
}

} // namespace ipoib::fuzz
