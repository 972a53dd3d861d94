#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A file through sockets of the kernel's protocols over RDMA, to ADDRESS:
sockets.py rds|smc receive ADDRESS FILE BYTES | send ADDRESS FILE SOURCE. The receiver prints "listening" when it can
be sent to. RDS sends messages, SMC a stream."""
import socket
import sys

PORT = 7000
PART, SPACE = 1 << 15, 1 << 24
AF_RDS, AF_SMC = 21, 43
DONE = b"done"


def make_socket(protocol, address):
    if protocol == "rds":
        end = socket.socket(AF_RDS, socket.SOCK_SEQPACKET)
        # Space for all messages: the kernel does not tell senders of the same host that there is space again.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SPACE)
    else:
        # Addresses are IPv4's, which Python does not know of this family.
        number = socket.socket(AF_SMC, socket.SOCK_STREAM).detach()
        end = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=number)
    end.bind((address, PORT))
    return end


def receive(protocol, address, file, missing):
    end = make_socket(protocol, address)
    if protocol == "smc":
        end.listen()
    print("listening", flush=True)
    if protocol == "smc":
        end = end.accept()[0]
    while missing > 0 and (message := end.recvfrom(PART))[0]:
        file.write(message[0])
        missing -= len(message[0])
    if protocol == "rds":
        end.connect(message[1])
    end.sendall(DONE)


def send(protocol, address, file, source):
    end = make_socket(protocol, source)
    end.connect((address, PORT))
    while data := file.read(PART):
        end.sendall(data)
    # A closed RDS socket may lose messages that have not arrived.
    assert end.recv(PART) == DONE
    end.close()


def main():
    protocol, action, address, name, last = sys.argv[1:]
    if action == "receive":
        with open(name, "wb") as file:
            receive(protocol, address, file, int(last))
    else:
        with open(name, "rb") as file:
            send(protocol, address, file, last)


main()
