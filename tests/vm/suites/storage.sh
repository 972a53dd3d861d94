# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2016,SC2034,SC2154,SC2317

# Storage over RDMA, by the kernel's own clients and servers on the fabric's HCAs: each writes a file and reads one, and
# both sides have the same data. Clients register their memory by work requests.
PORTS=2
HOSTS=1

# shellcheck source=/dev/null
. ./initial_namespace.sh

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

# NFS. A namespace's mounts, and the server's files in /proc, exist in the shell that makes them.

serve_nfs() {
    on 1 bash -e -c '
        mount -t nfsd nfsd /proc/fs/nfsd
        exportfs -i -o rw,no_root_squash,no_subtree_check,insecure,fsid=0 "*:/run/export"
        rpc.mountd --no-udp --no-nfs-version 3
        echo 10 >/proc/fs/nfsd/nfsv4leasetime
        echo 10 >/proc/fs/nfsd/nfsv4gracetime
        echo "-2 -3 +4 +4.1 +4.2" >/proc/fs/nfsd/versions
        echo rdma 20049 >/proc/fs/nfsd/portlist
        echo 2 >/proc/fs/nfsd/threads'
}
end_nfs() {
    on 1 bash -e -c 'mount -t nfsd nfsd /proc/fs/nfsd; echo 0 >/proc/fs/nfsd/threads; exportfs -au; exportfs -f'
    end_program rpc.mountd 10
    umount /run/export
    modprobe -r nfsv4 nfsd rpcrdma
}
test_nfs_moves_files_both_ways() {
    local before
    modprobe -a nfsd nfsv4 rpcrdma
    mkdir -p /run/export /run/nfs
    mount -t tmpfs tmpfs /run/export
    make_data /run/export/from-server
    make_data /run/data
    before=$(counter 2 registrations)
    serve_nfs >/run/serve_nfs 2>&1 || fail "$(cat /run/serve_nfs)"
    on 2 timeout $((100 * patience)) bash -e -c '
        mount -t nfs4 -o proto=rdma,port=20049 10.0.0.1:/ /run/nfs
        grep " /run/nfs " /proc/mounts | sed "s/^/# /"
        cp /run/data /run/nfs/from-client
        sync /run/nfs/from-client
        cp /run/nfs/from-server /run/back
        umount /run/nfs'
    same /run/data /run/export/from-client
    same /run/back /run/export/from-server
    registered_more_than 2 "$before"
    end_nfs
}

# A target's disk, a file

target=$configfs/target
make_scsi_disk() {
    mount_configfs
    truncate -s $((2 * mib << 20)) /run/disk
    mkdir -p $target/core/fileio_0/disk
    echo "fd_dev_name=/run/disk,fd_dev_size=$((2 * mib << 20))" >$target/core/fileio_0/disk/control
    echo 1 >$target/core/fileio_0/disk/enable
}
remove_scsi_disk() { rmdir $target/core/fileio_0/disk $target/core/fileio_0; }
scsi_disk() { local disks=(/sys/class/block/sd*); [ -e "${disks[0]}" ] && echo "/dev/${disks[0]##*/}"; }

# SRP: the target is on host 1's HCA, the initiator on host 2's.

# The initiator's port identifier.
initiator=0x00000000000000000002c90300000110
portal() { echo "$target/srpt/0xfe80000000000000$(printf '%016x' $((0x0002c90300000010)))"; }
make_srp_target() {
    local port
    modprobe -a target_core_file ib_srpt
    make_scsi_disk
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
    rmdir "$port/acls/$initiator/lun_0" "$port/acls/$initiator" "$port/lun/lun_0" "$port" "$(portal)" $target/srpt
    remove_scsi_disk
    modprobe -r ib_srpt target_core_file
}
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
    # The client maps memory anew while the invalidation of its region still waits to be executed.
    knob 2 delay_us 2000
    through_device "$(scsi_disk)"
    knob 2 delay_us 0
    same /run/data /run/disk
    registered_more_than 2 "$before"
    modprobe -r ib_srp
    remove_srp_target
}

# NVMe: both ends are of the initial namespace; host 1 has the target.

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
    enter_initial_namespace
    before=$(counter 2 registrations)
    make_nvme_target
    write /dev/nvme-fabrics 'transport=rdma,traddr=10.0.0.1,trsvcid=4420,nqn=test'
    wait_for 20 test -b /dev/nvme0n1
    through_device /dev/nvme0n1
    same /run/data /run/disk
    registered_more_than 2 "$before"
    echo 1 >/sys/class/nvme/nvme0/delete_controller
    remove_nvme_target
    leave_initial_namespace
}

# iSER: both ends are of the initial namespace; host 1 has the target.

portals=$configfs/target/iscsi/iqn.2020-01.test:disk/tpgt_1
make_iser_target() {
    modprobe -a target_core_file iscsi_target_mod ib_isert
    make_scsi_disk
    mkdir -p $portals/np/10.0.0.1:3260 $portals/lun/lun_0
    ln -s $target/core/fileio_0/disk $portals/lun/lun_0/disk
    # Any initiator, without a password.
    echo 1 >$portals/attrib/generate_node_acls
    echo 0 >$portals/attrib/demo_mode_write_protect
    echo 0 >$portals/attrib/authentication
    echo 1 >$portals/np/10.0.0.1:3260/iser
    echo 1 >$portals/enable
}
remove_iser_target() {
    echo 0 >$portals/enable
    rm $portals/lun/lun_0/disk
    rmdir $portals/lun/lun_0 $portals/np/10.0.0.1:3260 $portals ${portals%/*} ${portals%/*/*}
    remove_scsi_disk
    modprobe -r ib_isert iscsi_target_mod target_core_file
}
iser() { # ARGUMENT...
    iscsiadm -m node -T iqn.2020-01.test:disk -p 10.0.0.1:3260,1 "$@" >>/run/iscsiadm 2>&1 ||
        fail "$(tail -n 5 /run/iscsiadm)"
}
test_iser_disk_keeps_its_data() {
    local before
    enter_initial_namespace
    before=$(counter 2 registrations)
    make_iser_target
    modprobe -a ib_iser sd_mod
    mkdir -p /run/lock/iscsi
    iscsid
    iser -I iser -o new
    iser --login
    wait_for 20 scsi_disk
    through_device "$(scsi_disk)"
    same /run/data /run/disk
    registered_more_than 2 "$before"
    iser --logout
    iser -o delete
    end_program iscsid 10
    modprobe -r ib_iser
    remove_iser_target
    leave_initial_namespace
}
