# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Builds what test/lib/vm.sh boots. Debian's kernel is unpacked into .tools/vm and not installed; an initrd has the
# modules for the root file system. The isthmus-dp of build-portable is for a processor that QEMU emulates (no AVX-512).

VM_TOOLS=.tools/vm
# Folders of kept modules; all of them would take 400 MB.
VM_MODULES=(arch crypto lib net virt drivers/{char,net,pps,ptp,uio,vfio,virtio} fs/{9p,fscache,netfs,overlayfs})
VM_BOOT_MODULES=(virtio_pci 9p 9pnet_virtio overlay)

# usage: vm_download PACKAGE: into the folder where it is called
vm_download() {
	apt-get -q download "$1" && return
	is_root && apt-get -q update && apt-get -q download "$1"
}

# Gets the kernel that linux-image-amd64 stands for.
vm_kernel() {
	local package version modules tmp
	[[ ! -f $VM_TOOLS/version ]] || return 0
	package=$(apt-cache depends linux-image-amd64 | awk '$1 == "Depends:" { print $2; exit }')
	[[ $package == linux-image-* ]] || die "apt knows no linux-image-amd64"
	version=${package#linux-image-}
	say "getting $package into $VM_TOOLS"
	mkdir -p .tools
	rm -rf "$VM_TOOLS"
	tmp=$(mktemp -d "$VM_TOOLS.XXXXXX")
	(
		cd "$tmp" || exit
		vm_download "$package"
		dpkg --fsys-tarfile linux-image-*.deb >image.tar
		# From Debian 13 on they are below usr, and packed.
		modules=$(tar -tf image.tar | sed -n "s,/kernel/\$,,p" | head -n 1)
		tar -xf image.tar "./boot/vmlinuz-$version" \
			"$modules"/modules.{order,builtin,builtin.modinfo} "${VM_MODULES[@]/#/$modules/kernel/}"
		rm linux-image-*.deb image.tar
		[[ $modules != ./usr/* ]] || mv usr/lib lib
		find lib -name '*.ko.xz' -exec xz -d {} +
	)
	mv "$tmp/boot/vmlinuz-$version" "$tmp/vmlinuz"
	depmod -b "$tmp" "$version"
	printf '%s\n' "$version" >"$tmp/version"
	mv "$tmp" "$VM_TOOLS"
}

# Prints the files of the modules named and of those that they need, in the order in which they are loaded.
vm_modules() {
	local module
	for module; do
		modprobe -d "$ROOT/$VM_TOOLS" -S "$(cat "$VM_TOOLS/version")" --show-depends "$module"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

vm_initrd() {
	local tmp
	[[ ! $VM_TOOLS/initrd -nt test/vm/init || ! $VM_TOOLS/initrd -nt scripts/vm.sh ]] || return 0
	tmp=$(mktemp -d)
	mkdir "$tmp"/{bin,modules,proc,sys,dev,host,changes,root}
	cp test/vm/init "$tmp/init"
	cp /bin/busybox "$tmp/bin"
	vm_modules "${VM_BOOT_MODULES[@]}" | while IFS= read -r file; do
		cp "$file" "$tmp/modules"
		basename "$file" >>"$tmp/modules/order"
	done
	(cd "$tmp" && find . | cpio --quiet -o -H newc) >"$VM_TOOLS/initrd"
	rm -rf "$tmp"
}

# isthmus looks for isthmus-dp beside itself.
vm_build() {
	configure build-portable --buildtype=release -Dcpu=portable "$(pch_option)"
	flock build-portable/.dev-options ninja -C build-portable -j "$(jobs_count)" dataplane/isthmus-dp
	ln -sf dataplane/isthmus-dp build-portable/isthmus-dp
	cp -l -f build/isthmus build-portable/isthmus
}
