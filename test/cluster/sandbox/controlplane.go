package main

// etcd keeps its data without waiting for the disk: what is in it ends with the sandbox.
func (l layout) etcd() component {
	return component{Name: "etcd", Args: []string{
		l.program("etcd"), "--data-dir=" + l.state + "/etcd", "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
		"--initial-cluster=default=http://127.0.0.1:2380",
	}}
}

func (l layout) apiServer() component {
	return component{Name: "kube-apiserver", Args: []string{
		l.program("kube-apiserver"), "--etcd-servers=http://127.0.0.1:2379",
		"--advertise-address=" + hostAddress, "--bind-address=0.0.0.0", "--secure-port=6443",
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
		"--client-ca-file=" + l.secret("ca.crt"),
		"--tls-cert-file=" + l.secret("apiserver.crt"), "--tls-private-key-file=" + l.secret("apiserver.key"),
		"--kubelet-client-certificate=" + l.secret("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + l.secret("apiserver-kubelet.key"),
		"--kubelet-certificate-authority=" + l.secret("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.secret("accounts.pub"),
		"--service-account-signing-key-file=" + l.secret("accounts.key"),
		"--requestheader-client-ca-file=" + l.secret("ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + l.secret("front-proxy.crt"),
		"--proxy-client-key-file=" + l.secret("front-proxy.key"),
	}}
}

func (l layout) controllerManager() component {
	return component{Name: "kube-controller-manager", Args: []string{
		l.program("kube-controller-manager"), "--kubeconfig=" + l.kubeconfig("controller-manager"),
		"--leader-elect=false", "--use-service-account-credentials", "--bind-address=127.0.0.1",
		"--service-account-private-key-file=" + l.secret("accounts.key"), "--root-ca-file=" + l.secret("ca.crt"),
		"--cluster-signing-cert-file=" + l.secret("ca.crt"), "--cluster-signing-key-file=" + l.secret("ca.key"),
		// Each node's pod range is fixed: the order of allocation is not that of the nodes' names.
		"--allocate-node-cidrs=false",
		// With the default rates the first service account takes ten seconds.
		"--kube-api-qps=300", "--kube-api-burst=600",
	}}
}

func (l layout) scheduler() component {
	return component{Name: "kube-scheduler", Args: []string{
		l.program("kube-scheduler"), "--kubeconfig=" + l.kubeconfig("scheduler"),
		"--leader-elect=false", "--bind-address=127.0.0.1",
	}}
}
