//! Landlock for files and connections, seccomp for everything else.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::{LockdownError, Needs, existing};

/// Newer kernels enforce more of it, older ones less.
const LANDLOCK: ABI = ABI::V6;

/// Files for host name resolution, should the control plane have a host name.
const NAME_LOOKUP: [&str; 4] = [
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/host.conf",
];

/// Disables core dumps, so that no memory of players and scripts gets to disk.
pub fn limit_resources() -> Result<(), LockdownError> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none).map_err(|error| LockdownError::Seccomp(error.to_string()))
}

pub fn restrict_paths(needs: &Needs) -> Result<(), LockdownError> {
    let fail = |error: landlock::RulesetError| LockdownError::Landlock(error.to_string());
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::ConnectTcp))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .map_err(fail)?;
    let read = AccessFs::from_read(LANDLOCK) & !AccessFs::Execute;
    let write = AccessFs::WriteFile
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::Truncate;
    for path in NAME_LOOKUP {
        rules = allow(rules, path.as_ref(), AccessFs::ReadFile.into()).map_err(fail)?;
    }
    for path in &needs.reads {
        rules = allow(rules, path, read).map_err(fail)?;
    }
    for folder in needs.writes.iter().filter_map(|folder| existing(folder)) {
        rules = allow(rules, folder, write).map_err(fail)?;
    }
    if let Some(port) = needs.control_plane_port {
        let rule = NetPort::new(port, AccessNet::ConnectTcp);
        rules = rules.add_rule(rule).map_err(fail)?;
    }
    let status = rules.restrict_self().map_err(fail)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(LockdownError::Landlock("the kernel has none".into()));
    }
    Ok(())
}

/// A path that does not exist needs no rule. A file takes only the rights of files.
fn allow(
    rules: RulesetCreated,
    path: &std::path::Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    match PathFd::new(path) {
        Ok(fd) if path.is_dir() => rules.add_rule(PathBeneath::new(fd, access)),
        Ok(fd) => rules.add_rule(PathBeneath::new(fd, access & AccessFs::from_file(LANDLOCK))),
        Err(_) => Ok(rules),
    }
}

/// System calls for programs, other processes and kernel administration.
const FORBIDDEN: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_open,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_personality,
    libc::SYS_memfd_create,
];

pub fn forbid_calls() -> Result<(), LockdownError> {
    // The flags of `clone3` are behind a pointer that a filter cannot follow. When
    // it fails with ENOSYS, the C library uses `clone`.
    let no_clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    apply(no_clone3, SeccompAction::Allow, errno(libc::ENOSYS))?;

    let mut calls: BTreeMap<i64, Vec<SeccompRule>> =
        FORBIDDEN.iter().map(|&call| (call, Vec::new())).collect();
    // Threads are permitted; processes are not.
    let thread = libc::CLONE_THREAD as u64;
    let not_a_thread = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(thread),
        0,
    )
    .and_then(|condition| SeccompRule::new(vec![condition]))
    .map_err(|error| LockdownError::Seccomp(error.to_string()))?;
    calls.insert(libc::SYS_clone, vec![not_a_thread]);
    apply(calls, SeccompAction::Allow, errno(libc::EPERM))
}

/// The system calls of a loaded world: memory, its sockets, time, locks, its log,
/// and exit.
const DAILY: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_epoll_ctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

pub fn allow_only_daily_calls() -> Result<(), LockdownError> {
    let calls = DAILY.iter().map(|&call| (call, Vec::new())).collect();
    apply(calls, errno(libc::EPERM), SeccompAction::Allow)
}

fn errno(code: i32) -> SeccompAction {
    SeccompAction::Errno(code.unsigned_abs())
}

fn apply(
    calls: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    listed: SeccompAction,
) -> Result<(), LockdownError> {
    let fail = |error: String| LockdownError::Seccomp(error);
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|e| fail(e.to_string()))?;
    let filter = SeccompFilter::new(calls, otherwise, listed, arch);
    let program: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(|e| fail(e.to_string()))?;
    seccompiler::apply_filter(&program).map_err(|e| fail(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind::PermissionDenied;

    /// The sandbox applies to one thread and what it starts, so each test builds it
    /// around its own thread.
    fn inside(needs: Needs, test: impl FnOnce() + Send + 'static) {
        let thread = std::thread::spawn(move || {
            restrict_paths(&needs).expect("Landlock");
            forbid_calls().expect("seccomp");
            test();
        });
        thread.join().expect("the test inside the walls");
    }

    #[test]
    fn files_and_programs_are_out_of_reach() {
        inside(Needs::default(), || {
            for path in ["/etc/passwd", "/proc/self/environ", "/", "Cargo.toml"] {
                let error = std::fs::metadata(path)
                    .and_then(|meta| {
                        if meta.is_dir() {
                            std::fs::read_dir(path).map(|_| ())
                        } else {
                            std::fs::read(path).map(|_| ())
                        }
                    })
                    .expect_err(path);
                assert_eq!(error.kind(), PermissionDenied, "{path}");
            }
            let error = std::process::Command::new("/bin/true")
                .status()
                .expect_err("a program ran");
            assert_eq!(error.kind(), PermissionDenied);
            // Threads are what the process is made of.
            std::thread::spawn(|| {}).join().expect("a thread");
        });
    }

    #[test]
    fn only_the_control_plane_can_be_called() {
        let listen = || std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let (plane, other) = (listen(), listen());
        let [plane_at, other_at] = [&plane, &other].map(|l| l.local_addr().expect("an address"));
        let needs = Needs {
            control_plane_port: Some(plane_at.port()),
            ..Needs::default()
        };
        inside(needs, move || {
            std::net::TcpStream::connect(plane_at).expect("the control plane");
            let error = std::net::TcpStream::connect(other_at).expect_err("another server");
            assert_eq!(error.kind(), PermissionDenied);
        });
    }

    #[test]
    fn what_it_writes_it_cannot_read() {
        let folder = std::env::temp_dir().join(format!("frolic-lockdown-{}", std::process::id()));
        let needs = Needs {
            writes: vec![folder.clone()],
            ..Needs::default()
        };
        let file = folder.join("kept");
        inside(needs, move || {
            std::fs::write(&file, "x").expect("its own folder");
            let error = std::fs::read(&file).expect_err("read back");
            assert_eq!(error.kind(), PermissionDenied);
        });
        std::fs::remove_dir_all(folder).expect("cleaned up");
    }

    #[test]
    fn the_worlds_thread_makes_no_sockets() {
        let thread = std::thread::spawn(|| {
            allow_only_daily_calls().expect("seccomp");
            let error = std::net::UdpSocket::bind("127.0.0.1:0").expect_err("a socket");
            assert_eq!(error.kind(), PermissionDenied);
            let memory = vec![1_u8; 8 << 20];
            assert_eq!(memory.len(), 8 << 20);
        });
        thread.join().expect("the test inside the walls");
    }
}
