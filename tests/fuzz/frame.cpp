// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Received frames: datagrams, TCP segments to be merged, and messages on connections, with any content and completion.
#include "session.hpp"
#include "targets.hpp"

namespace ipoib::fuzz {

void frame(Input& input)
{
    // Inputs name operations by index: new ones are added at the end.
    static constexpr Operation table[] = {
        {"receive_datagram", &Session::receive_datagram},
        {"receive_segment", &Session::receive_segment},
        {"receive_message", &Session::receive_message},
        {"request", &Session::request},
        {"poll", &Session::poll},
        {"pass_time", &Session::pass_time},
        {"lack_memory", &Session::lack_memory},
        {"change_offloads", &Session::change_offloads},
        {"receive_bogus_completion", &Session::receive_bogus_completion},
        {"raise_event", &Session::raise_event},
        {"send", &Session::send},
        {"answer_path", &Session::answer_path},
        {"work", &Session::work},
        {"reply", &Session::reply},
        {"complete", &Session::complete},
        {"receive_message_on_ours", &Session::receive_message_on_ours},
    };
    Session session(input);
    session.bring_up();
    session.play(table);
}

} // namespace ipoib::fuzz
