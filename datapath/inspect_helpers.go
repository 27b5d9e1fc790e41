package datapath

import (
	"strings"
	"unicode"

	"github.com/cilium/ebpf/asm"
)

// gplOnlyHelper says whether only programs with a GPL-compatible licence may call a helper (gpl_only in the kernel's bpf_func_proto).
// Helpers that no program with a dispatcher can call are left out.
func gplOnlyHelper(helper asm.BuiltinFunc) bool {
	switch helper {
	case asm.FnCheckMtu, asm.FnFibLookup, asm.FnTcpCheckSyncookie, asm.FnTcpGenSyncookie,
		asm.FnTcpRawCheckSyncookieIpv4, asm.FnTcpRawCheckSyncookieIpv6, asm.FnTcpRawGenSyncookieIpv4, asm.FnTcpRawGenSyncookieIpv6,
		asm.FnPerfEventOutput, asm.FnPerfEventRead, asm.FnPerfEventReadValue,
		asm.FnProbeReadKernel, asm.FnProbeReadKernelStr, asm.FnProbeReadUser, asm.FnProbeReadUserStr, asm.FnCopyFromUserTask,
		asm.FnGetBranchSnapshot, asm.FnGetCurrentTask, asm.FnGetCurrentTaskBtf, asm.FnTaskPtRegs,
		asm.FnSnprintf, asm.FnTracePrintk, asm.FnTraceVprintk,
		asm.FnTimerInit, asm.FnTimerSetCallback, asm.FnTimerStart, asm.FnTimerCancel:
		return true
	}
	return false
}

// gplCompatible says what the kernel says of a licence (include/linux/license.h).
func gplCompatible(license string) bool {
	switch license {
	case "GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL":
		return true
	}
	return false
}

// helperName is what the kernel calls a helper: bpf_skb_pull_data for [asm.FnSkbPullData].
func helperName(helper asm.BuiltinFunc) string {
	var b strings.Builder
	b.WriteString("bpf")
	for _, r := range strings.TrimPrefix(helper.String(), "Fn") {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
