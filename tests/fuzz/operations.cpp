// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// All operations on the driver, one after the other.
#include "session.hpp"
#include "targets.hpp"

namespace ipoib::fuzz {

void operations(Input& input)
{
    // Inputs name operations by index: new ones are added at the end.
    static constexpr Operation table[] = {
        {"open", &Session::open},
        {"answer_join", &Session::answer_join},
        {"answer_path", &Session::answer_path},
        {"send", &Session::send},
        {"complete", &Session::complete},
        {"work", &Session::work},
        {"receive_datagram", &Session::receive_datagram},
        {"request", &Session::request},
        {"reply", &Session::reply},
        {"say", &Session::say},
        {"receive_message", &Session::receive_message},
        {"close", &Session::close},
        {"poll", &Session::poll},
        {"pass_time", &Session::pass_time},
        {"store_word", &Session::store_word},
        {"change_mtu", &Session::change_mtu},
        {"change_rings", &Session::change_rings},
        {"raise_event", &Session::raise_event},
        {"change_port", &Session::change_port},
        {"lack_memory", &Session::lack_memory},
        {"unplug", &Session::unplug},
        {"change_groups", &Session::change_groups},
        {"create_link", &Session::create_link},
        {"change_link", &Session::change_link},
        {"delete_link", &Session::delete_link},
        {"store", &Session::store},
        {"show", &Session::show},
        {"change_moderation", &Session::change_moderation},
        {"change_address", &Session::change_address},
        {"change_offloads", &Session::change_offloads},
        {"find", &Session::find},
        {"time_out", &Session::time_out},
        {"send_segments", &Session::send_segments},
        {"receive_segment", &Session::receive_segment},
        {"change_cm", &Session::change_cm},
        {"forget_membership", &Session::forget_membership},
        {"answer_when_cancelled", &Session::answer_when_cancelled},
        {"receive_bogus_completion", &Session::receive_bogus_completion},
        {"change_flags", &Session::change_flags},
    };
    Session session(input);
    session.play(table);
}

} // namespace ipoib::fuzz
