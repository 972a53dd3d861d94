# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2016,SC2034,SC2154,SC2317

# Storage over RDMA, by the kernel's own clients and servers on the fabric's HCAs: each writes a file and reads one, and
# both sides have the same data. Clients register their memory by work requests.
PORTS=2
HOSTS=1

configfs=/sys/kernel/config
mib=8

make_data() { head -c $((mib << 20)) /dev/urandom >"$1"; } # FILE
sum() { head -c $((mib << 20)) "$1" | sha256sum | cut -d ' ' -f 1; } # FILE
same() { [ "$(sum "$1")" = "$(sum "$2")" ] || fail "$1 and $2 differ"; } # FILE FILE
registered_more_than() { [ "$(counter "$1" registrations)" -gt "$2" ]; } # HOST BEFORE
# Writes data to a block device, without the page cache, and reads them.
through_device() { # DEVICE
    make_data /run/data
    dd if=/run/data of="$1" bs=1M oflag=direct status=none
    dd if="$1" of=/run/back bs=1M count=$mib iflag=direct status=none
    same /run/data /run/back
}
mount_configfs() { mountpoint -q $configfs || mount -t configfs none $configfs; }

# SRP: the target is on host 1's HCA, the initiator on host 2's.

target=$configfs/target
# The initiator's port identifier.
initiator=0x00000000000000000002c90300000110
portal() { echo "$target/srpt/0xfe80000000000000$(printf '%016x' $((0x0002c90300000010)))"; }
make_srp_target() {
    local port
    modprobe -a target_core_file ib_srpt
    mount_configfs
    truncate -s $((2 * mib << 20)) /run/disk
    mkdir -p $target/core/fileio_0/disk
    echo "fd_dev_name=/run/disk,fd_dev_size=$((2 * mib << 20))" >$target/core/fileio_0/disk/control
    echo 1 >$target/core/fileio_0/disk/enable
    port=$(portal)
    port=$port/${port##*/}
    mkdir -p "$port/lun/lun_0" "$port/acls/$initiator/lun_0"
    ln -s $target/core/fileio_0/disk "$port/lun/lun_0/disk"
    ln -s "$port/lun/lun_0" "$port/acls/$initiator/lun_0/lun"
    echo 0 >"$port/acls/$initiator/lun_0/write_protect"
    echo 1 >"$port/enable"
}
remove_srp_target() {
    local port
    port=$(portal)
    port=$port/${port##*/}
    echo 0 >"$port/enable"
    rm "$port/acls/$initiator/lun_0/lun" "$port/lun/lun_0/disk"
    rmdir "$port/acls/$initiator/lun_0" "$port/acls/$initiator" "$port/lun/lun_0" "$port" "$(portal)" $target/srpt $target/core/fileio_0/disk $target/core/fileio_0
    modprobe -r ib_srpt target_core_file
}
scsi_disk() { local disks=(/sys/class/block/sd*); [ -e "${disks[0]}" ] && echo "/dev/${disks[0]##*/}"; }
test_srp_disk_keeps_its_data() {
    local before guid=0002c90300000010 login
    before=$(counter 2 registrations)
    make_srp_target
    modprobe -a ib_srp sd_mod
    login=id_ext=$guid,ioc_guid=$guid,dgid=fe80000000000000$guid,pkey=ffff,service_id=$guid
    write /sys/class/infiniband_srp/srp-soft_ib1-1/add_target "$login"
    wait_for 20 scsi_disk
    through_device "$(scsi_disk)"
    same /run/data /run/disk
    registered_more_than 2 "$before"
    modprobe -r ib_srp
    remove_srp_target
}

# NVMe: target and host are both of the initial namespace, and use one HCA.

subsystem=$configfs/nvmet/subsystems/test
make_nvme_target() {
    modprobe -a nvmet-rdma nvme-rdma
    mount_configfs
    truncate -s $((2 * mib << 20)) /run/disk
    mkdir -p $subsystem/namespaces/1
    echo 1 >$subsystem/attr_allow_any_host
    echo -n /run/disk >$subsystem/namespaces/1/device_path
    echo 1 >$subsystem/namespaces/1/buffered_io
    echo 1 >$subsystem/namespaces/1/enable
    mkdir -p $configfs/nvmet/ports/1
    echo rdma >$configfs/nvmet/ports/1/addr_trtype
    echo ipv4 >$configfs/nvmet/ports/1/addr_adrfam
    echo 10.0.0.1 >$configfs/nvmet/ports/1/addr_traddr
    echo 4420 >$configfs/nvmet/ports/1/addr_trsvcid
    ln -s $subsystem $configfs/nvmet/ports/1/subsystems/test
}
remove_nvme_target() {
    rm $configfs/nvmet/ports/1/subsystems/test
    rmdir $configfs/nvmet/ports/1 $subsystem/namespaces/1 $subsystem
    modprobe -r nvme-rdma nvmet-rdma
}
test_nvme_disk_keeps_its_data() {
    local before
    on 1 ip link set ib0 netns 1
    ip link set lo up
    ip addr add 10.0.0.1/24 dev ib0
    ip link set ib0 up
    before=$(counter 1 registrations)
    make_nvme_target
    write /dev/nvme-fabrics 'transport=rdma,traddr=10.0.0.1,trsvcid=4420,nqn=test'
    wait_for 20 test -b /dev/nvme0n1
    through_device /dev/nvme0n1
    same /run/data /run/disk
    registered_more_than 1 "$before"
    echo 1 >/sys/class/nvme/nvme0/delete_controller
    remove_nvme_target
    ip addr flush dev ib0
    ip link set ib0 down
    add_host 1
}
