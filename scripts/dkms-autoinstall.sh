# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034 # DKMS reads them
# Part of dkms.conf, for the builds that DKMS starts when a kernel is installed.
#
# A new kernel whose C++ compiler is missing keeps its own module, and check-tools names the compiler: a failed build
# would leave the kernel's package half installed, on Debian without an initramfs. DKMS sets a local `kernelver` while it
# sources this file; `unset kernelver` uncovers the caller's, the new kernel. DKMS before 3.0.11 sources it once for each
# kernel that has a build of the module, with that kernel as `kernelver`; the first of these passes prints the message.
# Later versions source it once, for the new kernel.
#
# OFED's ib_core, if DKMS builds that too, has to be there before a module that needs it.
case ${action:-} in
autoinstall | kernel_postinst)
    kernel=$(unset kernelver; echo "${kernelver:-}")
    checked=$("${BASH_SOURCE[0]%/*}/check-tools" "$kernel" "/lib/modules/$kernel/build" 2>&1) || {
        AUTOINSTALL=
        built=("${BASH_SOURCE[0]%/source/*}"/[0-9]*/)
        [[ ${FUNCNAME[*]} == *status* || ${kernelver:-} != "$kernel" && ${built[0]} != */"${kernelver:-[0-9]*}"/ ]] ||
            echo "$checked" >&2
    }
    [ ! -d "${BASH_SOURCE[0]%/*/*/source/*}/mlnx-ofed-kernel" ] || BUILD_DEPENDS[0]=mlnx-ofed-kernel
    ;;
esac
