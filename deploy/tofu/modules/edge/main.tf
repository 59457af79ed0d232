# HTTPS for the API: CloudFront before the load balancer. Nothing is cached; long streams stay open.
variable "prefix" {
  type = string
}

variable "domain" {
  type = string
}

variable "load_balancer_hostname" {
  type = string
}

variable "ssh_proxy_hostname" {
  type = string
}

data "aws_cloudfront_cache_policy" "off" {
  name = "Managed-CachingDisabled"
}

# All headers go through, the host among them: the signature of a login is for the name that the client used.
data "aws_cloudfront_origin_request_policy" "everything" {
  name = "Managed-AllViewer"
}

data "aws_route53_zone" "this" {
  count = var.domain == "" ? 0 : 1

  name = var.domain
}

locals {
  api_name = var.domain == "" ? "" : "api.${var.domain}"
}

# CloudFront takes certificates of this region only.
resource "aws_acm_certificate" "api" {
  count = var.domain == "" ? 0 : 1

  region            = "us-east-1"
  domain_name       = local.api_name
  validation_method = "DNS"

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_route53_record" "validation" {
  for_each = var.domain == "" ? {} : {
    for option in aws_acm_certificate.api[0].domain_validation_options : option.domain_name => option
  }

  zone_id = data.aws_route53_zone.this[0].zone_id
  name    = each.value.resource_record_name
  type    = each.value.resource_record_type
  records = [each.value.resource_record_value]
  ttl     = 60
}

resource "aws_acm_certificate_validation" "api" {
  count = var.domain == "" ? 0 : 1

  region                  = "us-east-1"
  certificate_arn         = aws_acm_certificate.api[0].arn
  validation_record_fqdns = [for record in aws_route53_record.validation : record.fqdn]
}

resource "aws_cloudfront_distribution" "api" {
  enabled         = true
  is_ipv6_enabled = true
  # Scripts of operators find it by this comment.
  comment     = "GPU Dev API Service - HTTPS endpoint"
  aliases     = compact([local.api_name])
  price_class = "PriceClass_100"

  dynamic "origin" {
    for_each = { "api-service" = var.load_balancer_hostname, "ssh-proxy" = var.ssh_proxy_hostname }

    content {
      domain_name = origin.value
      origin_id   = origin.key

      custom_origin_config {
        http_port                = 80
        https_port               = 443
        origin_protocol_policy   = "http-only"
        origin_ssl_protocols     = ["TLSv1.2"]
        origin_read_timeout      = 60
        origin_keepalive_timeout = 60
      }
    }
  }

  # WebSockets of the SSH proxy. What is silent for ten minutes CloudFront ends; `ssh` is never silent for so long.
  ordered_cache_behavior {
    path_pattern             = "/v1/jobs/*/ssh"
    target_origin_id         = "ssh-proxy"
    viewer_protocol_policy   = "https-only"
    allowed_methods          = ["GET", "HEAD"]
    cached_methods           = ["GET", "HEAD"]
    cache_policy_id          = data.aws_cloudfront_cache_policy.off.id
    origin_request_policy_id = data.aws_cloudfront_origin_request_policy.everything.id
    compress                 = false
  }

  default_cache_behavior {
    target_origin_id         = "api-service"
    viewer_protocol_policy   = "https-only"
    allowed_methods          = ["GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE"]
    cached_methods           = ["GET", "HEAD"]
    cache_policy_id          = data.aws_cloudfront_cache_policy.off.id
    origin_request_policy_id = data.aws_cloudfront_origin_request_policy.everything.id
    # An event stream is sent as it comes.
    compress = false
  }

  restrictions {
    geo_restriction {
      restriction_type = "none"
    }
  }

  viewer_certificate {
    cloudfront_default_certificate = var.domain == ""
    acm_certificate_arn            = var.domain == "" ? null : aws_acm_certificate_validation.api[0].certificate_arn
    ssl_support_method             = var.domain == "" ? null : "sni-only"
    minimum_protocol_version       = var.domain == "" ? null : "TLSv1.2_2021"
  }

  tags = { Name = "${var.prefix}-api" }
}

resource "aws_route53_record" "api" {
  count = var.domain == "" ? 0 : 1

  zone_id = data.aws_route53_zone.this[0].zone_id
  name    = local.api_name
  type    = "A"

  alias {
    name                   = aws_cloudfront_distribution.api.domain_name
    zone_id                = aws_cloudfront_distribution.api.hosted_zone_id
    evaluate_target_health = false
  }
}

output "url" {
  value = "https://${var.domain == "" ? aws_cloudfront_distribution.api.domain_name : local.api_name}"
}
