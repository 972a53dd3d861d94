// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The target of a CM identifier's messages.
#pragma once
#include <shim/cm.h>

namespace ipoib {

class Endpoint {
public:
    using Handler = int (*)(Endpoint& endpoint, ib_cm_id* id, const shim_cm_message& message);
    explicit Endpoint(Handler handler) : handler_(handler) {}
    // Returns nonzero if the CM is to destroy the identifier. CONTEXT: process.
    int handle(ib_cm_id* id, const shim_cm_message& message) { return handler_(*this, id, message); }

private:
    Handler handler_;
};

} // namespace ipoib
