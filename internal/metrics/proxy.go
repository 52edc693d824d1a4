package metrics

import (
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

func (s sheet) proxy(key router.PoolKey, seen proxy.PoolMetrics) {
	ns, name := key.Namespace, key.Name
	s.put(proxyHeld, float64(seen.Held), ns, name)
	s.put(proxyUnattached, float64(seen.WithoutAffinity), ns, name)
	for label, ended := range seen.Ended {
		labels := []string{ns, name, string(label)}
		s.put(proxyIn, float64(ended.RequestBytes), labels...)
		s.put(proxyOut, float64(ended.ReplyBytes), labels...)
		s.classes(proxyDuration, ended.Total.Bounds, ended.Total.Counts, ended.Total.Sum, labels...)
		s.classes(proxyFirstByte, ended.FirstByte.Bounds, ended.FirstByte.Counts, ended.FirstByte.Sum, labels...)
	}
}
